#pragma once
// The signing key that the managers of one store share, and the key that is to follow it. An administrator changes the
// file of each manager; the managers change together, when the leader does.
#include <memory>
#include <mutex>
#include <utility>

#include "tributary/protocol/credential.h"

namespace tributary::manager {

/// Any thread may call it.
class LiveKey {
 public:
  explicit LiveKey(const SigningKey& key) : now_(copy_of(key)) {}
  LiveKey(const LiveKey&) = delete;
  LiveKey& operator=(const LiveKey&) = delete;

  /// Returns the key of this moment. The caller may use it as long as it holds it.
  [[nodiscard]] std::shared_ptr<const SigningKey> now() const {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  /// Returns the key that is to follow; nullptr: none is known.
  [[nodiscard]] std::shared_ptr<const SigningKey> next() const {
    const std::lock_guard lock(mutex_);
    return next_;
  }
  /// Takes the key of this manager's file: if it is not the present key, it is the next one.
  void offer(const SigningKey& key) {
    const std::lock_guard lock(mutex_);
    next_ = key.public_key() == now_->public_key() ? nullptr : copy_of(key);
  }
  /// Uses this key from now on.
  void use(std::shared_ptr<const SigningKey> key) {
    const std::lock_guard lock(mutex_);
    now_ = std::move(key);
    next_ = nullptr;
  }

 private:
  [[nodiscard]] static std::shared_ptr<const SigningKey> copy_of(const SigningKey& key) {
    return std::make_shared<const SigningKey>(SigningKey::from_seed(key.seed()).value());
  }

  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const SigningKey> now_, next_;
};

}  // namespace tributary::manager
