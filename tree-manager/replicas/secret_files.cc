#include "tree-manager/replicas/secret_files.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <utility>

#include "tree-manager/identity/key_file.h"

namespace tributary::manager {

Result<SharedSecrets> SecretKeeper::of_files() const {
  auto secrets = load_or_make_secrets(files_.paths);
  if (!secrets) return std::unexpected(secrets.error());
  auto keys = read_identity_keys(files_.identity_keys);
  if (!keys) return std::unexpected(keys.error());
  return SharedSecrets{.aggregator_token = std::move(secrets->aggregator_token),
                       .job_token = std::move(secrets->job_token),
                       .identity_keys = std::move(*keys)};
}

Status SecretKeeper::show(const SharedSecrets& secrets, Api& api) {
  auto keys = IdentityKeys::parse(secrets.identity_keys);
  if (!keys) return fail(Errc::corrupt, "the store's identity keys cannot be read: " + keys.error().message);
  api.authenticator().use_keys(std::move(*keys));
  api.authenticator().use_old_secrets({.aggregator_token = secrets.aggregator_token, .job_token = secrets.job_token});
  return {};
}

/// Writes the secrets to the files, and saves identity keys that the store does not have beside the file. Failures are
/// only logged, because a file may be mounted read-only.
void SecretKeeper::write_files(const SharedSecrets& secrets) const {
  const auto now = of_files();
  const auto write = [](const std::string& path, const std::string& text) {
    if (const auto ok = write_private_file(path, text); !ok) {
      spdlog::error("{} is not the one that the managers of this store share: {}", path, ok.error().message);
    } else {
      spdlog::info("{} was taken over from the store", path);
    }
  };
  if (!now || now->aggregator_token != secrets.aggregator_token)
    write(files_.paths.aggregator_token, secrets.aggregator_token + "\n");
  if (!now || now->job_token != secrets.job_token) write(files_.paths.job_token, secrets.job_token + "\n");
  if (now && now->identity_keys == secrets.identity_keys) return;
  static_cast<void>(std::rename(files_.identity_keys.c_str(), (files_.identity_keys + ".replaced").c_str()));
  write(files_.identity_keys, secrets.identity_keys);
}

/// Opens the store's secrets with the present or the next key, and uses the key that has sealed them.
Result<SharedSecrets> SecretKeeper::open(const std::string& sealed) {
  auto secrets = open_secrets(*key_.now(), sealed);
  const auto next = key_.next();
  if (secrets || !next) return secrets;
  auto by_next = open_secrets(*next, sealed);
  if (!by_next) return secrets;
  key_.use(next);
  spdlog::warn("this manager uses the new signing key of its file from now on, because the leader does");
  return by_next;
}

Status SecretKeeper::take_over(const std::string& sealed, Api* api) {
  const std::lock_guard lock(mutex_);
  if (sealed.empty() || sealed == sealed_) return {};
  auto secrets = open(sealed);
  if (!secrets) return std::unexpected(secrets.error());
  if (api != nullptr) {
    if (auto ok = show(*secrets, *api); !ok) return ok;
    sealed_ = sealed;
  }
  write_files(*secrets);
  known_ = std::move(*secrets);
  return {};
}

Status SecretKeeper::put(Cluster& cluster, const SharedSecrets& secrets) {
  auto sealed = seal_secrets(*key_.now(), secrets);
  if (!sealed) return std::unexpected(sealed.error());
  if (auto ok = cluster.keep(kSharedSecretsKey, *sealed); !ok) return ok;
  sealed_ = std::move(*sealed);
  known_ = secrets;
  return {};
}

Status SecretKeeper::begin(Cluster& cluster, Api& api) {
  const std::string sealed = cluster.kept(kSharedSecretsKey);
  return sealed.empty() ? publish(cluster, api) : take_over(sealed, &api);
}

Status SecretKeeper::publish(Cluster& cluster, Api& api) {
  const std::lock_guard lock(mutex_);
  const auto secrets = of_files();
  if (!secrets) return std::unexpected(secrets.error());
  if (*secrets == known_ && !sealed_.empty()) return {};
  // Other managers read new keys from the store, so the store gets them before this manager signs with them.
  if (auto ok = put(cluster, *secrets); !ok) return ok;
  return show(*secrets, api);
}

Status SecretKeeper::change_key(Cluster& cluster) {
  const std::lock_guard lock(mutex_);
  const auto next = key_.next();
  if (!next) return {};
  auto sealed = seal_secrets(*next, known_);
  if (!sealed) return std::unexpected(sealed.error());
  // The store gets the word first: if it takes no more words of this leader, the key stays.
  if (auto ok = cluster.keep(kSharedSecretsKey, *sealed); !ok) return ok;
  sealed_ = std::move(*sealed);
  key_.use(next);
  cluster.signing().use(*next);
  spdlog::warn("the managers sign with another key from now on; aggregators learn it at their next renewal");
  return {};
}

bool SecretKeeper::files_differ() {
  const auto secrets = of_files();
  const std::lock_guard lock(mutex_);
  return secrets && !sealed_.empty() && *secrets != known_;
}

}  // namespace tributary::manager
