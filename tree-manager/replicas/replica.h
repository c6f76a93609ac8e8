#pragma once
// One of several managers that share an etcd: combines the parts of this folder.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tree-manager/replicas/front.h"
#include "tree-manager/replicas/secret_files.h"
#include "tree-manager/service/secrets.h"
#include "tree-manager/store/etcd/etcd_election.h"
#include "tree-manager/store/etcd/etcd_store.h"

namespace tributary::manager {

struct ReplicaSettings {
  EtcdSettings etcd;
  std::chrono::milliseconds lease{5000};  // time for which a leader may be silent
  ClusterSettings cluster{};
  PassingSettings passing{};
  SecretFiles files;
  std::function<Result<std::optional<Topology>>()> topology;  // reads the configured file; nullopt: there is none
};

/// Any thread may call it.
class Replica {
 public:
  /// Takes over the store's secrets, if etcd answers. Errc::denied: the store's managers have another signing key.
  /// The clock must outlive the replica.
  [[nodiscard]] static Result<std::unique_ptr<Replica>> open(ReplicaSettings settings, const SigningKey& key,
                                                             const Clock& clock, ApiSettings api);
  ~Replica();
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  [[nodiscard]] service::HttpHandler& handler() { return *front_; }
  [[nodiscard]] Api& api() { return *api_; }
  /// Takes part in the election from now on. Other managers reach this manager at `url`.
  void start(const std::string& url);
  void stop();
  /// Ends leases whose time is over, if this manager leads. Call it a few times a second.
  void tick();
  /// Reads the topology and the secrets from their files again, after the files have changed. Logs errors of files, and
  /// returns false then. An error is one of the store, or says that no manager leads: call it again later.
  [[nodiscard]] Result<bool> reload();
  /// Returns the public key of the key with which the managers sign now.
  [[nodiscard]] PublicKey public_key() const { return key_.now()->public_key(); }

 private:
  Replica(ReplicaSettings settings, const SigningKey& key, const Clock& clock);
  [[nodiscard]] Status assemble(ApiSettings api);
  [[nodiscard]] Result<std::unique_ptr<Reign>> open_reign(const Term& term) const;
  [[nodiscard]] Status begin(Cluster& cluster);
  void follow();
  [[nodiscard]] Result<bool> reload_signing_key(Cluster* cluster);
  [[nodiscard]] Result<bool> reload_topology(Cluster& cluster);
  [[nodiscard]] Result<bool> reload_secrets(Cluster& cluster);

  const ReplicaSettings settings_;
  std::string url_;  // URL at which other managers reach this manager; set by start()
  LiveKey key_;
  const Clock& clock_;
  SecretKeeper secrets_;
  std::string refused_;  // the store's secrets that this manager could not read; only the keeper's thread uses it
  Passing passing_;
  std::unique_ptr<EtcdElection> election_;
  std::unique_ptr<EtcdStore> followed_;  // only the keeper's thread uses it
  std::unique_ptr<EtcdStore> copied_;    // only the copy uses it
  std::unique_ptr<Copy> copy_;
  std::unique_ptr<Member> member_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Front> front_;
};

}  // namespace tributary::manager
