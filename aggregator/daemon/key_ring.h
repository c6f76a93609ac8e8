#pragma once
// The means to verify joins: the manager's key, and this aggregator's name in tokens. The control thread changes it,
// the front door reads it.
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::aggregator {

class KeyRing {
 public:
  struct Key {
    std::string name;
    PublicKey public_key;
    TokenVerifier verifier;
    std::optional<SharedSecret> shared;  // shared with the manager: the secrets that seal packets are computed from it
  };

  /// Returns nullptr before the first answer of the manager: then no join can be verified. Any thread.
  [[nodiscard]] std::shared_ptr<const Key> current() const {
    const std::lock_guard lock(mutex_);
    return key_;
  }
  /// Sets the key for joins from now on; a join that is being verified goes on with the key that it took. Any thread.
  [[nodiscard]] Status set(const std::string& name, const PublicKey& public_key,
                           const std::optional<SharedSecret>& shared = std::nullopt) {
    auto verifier = TokenVerifier::create(public_key);
    if (!verifier) return std::unexpected(verifier.error());
    auto key = std::make_shared<const Key>(Key{name, public_key, std::move(*verifier), shared});
    const std::lock_guard lock(mutex_);
    key_ = std::move(key);
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Key> key_;
};

}  // namespace tributary::aggregator
