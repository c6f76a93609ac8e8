#pragma once
// The data with which joins are verified: the manager's key, this aggregator's name in tokens, and the highest fence
// that was seen. The control thread changes the key and the name; the front door reads them.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_secret.h"
#include "tributary/protocol/reason.h"

namespace tributary::aggregator {

class KeyRing {
 public:
  struct Key {
    std::string name;
    PublicKey public_key;
    TokenVerifier verifier;
    std::optional<SharedSecret> shared;  // shared with the manager: source of the secrets that seal packets
  };

  /// Returns nullptr before the first answer of the manager: no join can be verified before. Any thread may call it.
  [[nodiscard]] std::shared_ptr<const Key> current() const {
    const std::lock_guard lock(mutex_);
    return key_;
  }
  /// Sets the key for joins from now on. A join that is being verified still uses the earlier key. Any thread may call
  /// it.
  [[nodiscard]] Status set(const std::string& name, const PublicKey& public_key,
                           const std::optional<SharedSecret>& shared = std::nullopt) {
    auto verifier = TokenVerifier::create(public_key);
    if (!verifier) return std::unexpected(verifier.error());
    auto key = std::make_shared<const Key>(Key{name, public_key, std::move(*verifier), shared});
    const std::lock_guard lock(mutex_);
    key_ = std::move(key);
    return {};
  }

  /// Returns the highest fence that was seen; 0: none. Any thread may call it.
  [[nodiscard]] std::uint64_t fence() const noexcept { return fence_.load(std::memory_order_relaxed); }
  /// Notes a fence that the manager has sent. Any thread may call it.
  void note_fence(std::uint64_t fence) noexcept {
    for (std::uint64_t known = fence_.load(std::memory_order_relaxed);
         fence > known && !fence_.compare_exchange_weak(known, fence, std::memory_order_relaxed);) {
    }
  }
  /// Takes a token whose signature is right. Refuses the token if a later leadership is known than the one that signed
  /// it. Any thread may call it.
  [[nodiscard]] Status admit(const TokenClaims& claims) noexcept {
    const std::uint64_t known = fence();
    if (claims.fence >= known) {
      note_fence(claims.fence);
      return {};
    }
    return fail(Errc::denied, Reason::old_leadership,
                "the token is of a manager that no longer leads: its fence is " + std::to_string(claims.fence) +
                    ", and " + std::to_string(known) + " has been seen; ask the manager that leads for a new one");
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Key> key_;
  std::atomic<std::uint64_t> fence_{0};
};

}  // namespace tributary::aggregator
