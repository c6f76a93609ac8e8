#pragma once
// Keeps the shared secrets in this manager's files, in its REST interface and in the store equal. The store decides:
// to change the secrets, change the files of the leader, and send SIGHUP to the leader. The signing key is never in the
// store: it changes when the store's secrets are sealed with the key that this manager's file has.
#include <mutex>
#include <string>

#include "tree-manager/api/api.h"
#include "tree-manager/replicas/live_key.h"
#include "tree-manager/replicas/shared_secrets.h"
#include "tree-manager/service/secrets.h"

namespace tributary::manager {

struct SecretFiles {
  SecretPaths paths;
  std::string identity_keys;  // path of the file
};

/// Any thread may call it.
class SecretKeeper {
 public:
  /// The key must outlive it.
  SecretKeeper(SecretFiles files, LiveKey& key) : files_(std::move(files)), key_(key) {}

  /// Takes over the store's secrets. If the store has none, `sealed` is empty and nothing changes. If they are sealed
  /// with the next signing key, this manager uses this key from now on. Errc::denied: the store's managers have another
  /// signing key.
  [[nodiscard]] Status take_over(const std::string& sealed, Api* api);
  /// On the leader: takes over the store's secrets; if the store has none, puts the files' secrets there.
  [[nodiscard]] Status begin(Cluster& cluster, Api& api);
  /// On the leader: puts the files' secrets into the store, if they differ from the store's secrets.
  [[nodiscard]] Status publish(Cluster& cluster, Api& api);
  /// On the leader: seals the store's secrets with the next signing key, so that all managers which have it use it.
  [[nodiscard]] Status change_key(Cluster& cluster);
  /// Returns whether the files' secrets differ from the store's secrets.
  [[nodiscard]] bool files_differ();

 private:
  [[nodiscard]] Result<SharedSecrets> of_files() const;
  [[nodiscard]] Result<SharedSecrets> open(const std::string& sealed);
  [[nodiscard]] Status put(Cluster& cluster, const SharedSecrets& secrets);
  [[nodiscard]] static Status show(const SharedSecrets& secrets, Api& api);
  void write_files(const SharedSecrets& secrets) const;

  const SecretFiles files_;
  LiveKey& key_;
  std::mutex mutex_;    // guards the members below
  std::string sealed_;  // the sealed record that the store has
  SharedSecrets known_;
};

}  // namespace tributary::manager
