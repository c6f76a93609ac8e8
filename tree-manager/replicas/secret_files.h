#pragma once
// Keeps the shared secrets of this manager's files, of its REST interface and of the store equal. The store's word
// counts: whoever wants others changes the files of the manager that leads, and sends that one SIGHUP.
#include <mutex>
#include <string>

#include "tree-manager/api/api.h"
#include "tree-manager/replicas/shared_secrets.h"
#include "tree-manager/service/secrets.h"

namespace tributary::manager {

struct SecretFiles {
  SecretPaths paths;
  std::string identity_keys;  // path
};

/// Any thread.
class SecretKeeper {
 public:
  /// The key must outlive it.
  SecretKeeper(SecretFiles files, const SigningKey& key) : files_(std::move(files)), key_(key) {}

  /// Takes over what the store has; without a text there, `sealed` is empty and nothing happens. Errc::denied: the
  /// store's managers have another signing key.
  [[nodiscard]] Status take_over(const std::string& sealed, Api* api);
  /// For the manager that leads: takes over what the store has, or puts the files' secrets there.
  [[nodiscard]] Status begin(Cluster& cluster, Api& api);
  /// For the manager that leads: puts the files' secrets into the store, if they are others.
  [[nodiscard]] Status publish(Cluster& cluster, Api& api);
  /// Says whether the files hold other secrets than the store.
  [[nodiscard]] bool files_differ();

 private:
  [[nodiscard]] Result<SharedSecrets> of_files() const;
  [[nodiscard]] Status put(Cluster& cluster, const SharedSecrets& secrets);
  [[nodiscard]] static Status show(const SharedSecrets& secrets, Api& api);
  void write_files(const SharedSecrets& secrets) const;

  const SecretFiles files_;
  const SigningKey& key_;
  std::mutex mutex_;    // guards what follows
  std::string sealed_;  // the sealed record that the store has
  SharedSecrets known_;
};

}  // namespace tributary::manager
