#pragma once
// The signing key of the manager, and the keys that are derived from it. An administrator may change it while the
// manager runs.
#include <memory>
#include <mutex>

#include "tree-manager/service/sealed_record.h"
#include "tributary/protocol/credential.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::manager {

/// Any thread may call it.
class SigningKeys {
 public:
  struct Keys {
    SigningKey signing;
    ExchangeKey exchange;
    RecordSeal seal;
    std::uint64_t number = 0;  // 1, and one more after each change
  };
  explicit SigningKeys(const SigningKey& key) : keys_(derived_from(key, 1)) {}

  /// Returns the keys of this moment. The caller may use them as long as it holds them.
  [[nodiscard]] std::shared_ptr<const Keys> now() const {
    const std::lock_guard lock(mutex_);
    return keys_;
  }
  void use(const SigningKey& key) {
    const std::lock_guard lock(mutex_);
    keys_ = derived_from(key, keys_->number + 1);
  }

 private:
  [[nodiscard]] static std::shared_ptr<const Keys> derived_from(const SigningKey& key, std::uint64_t number) {
    return std::make_shared<const Keys>(
        Keys{.signing = SigningKey::from_seed(key.seed()).value(),
             .exchange = exchange_key_of(key.seed(), "tributary manager exchange").value(),
             .seal = RecordSeal(key),
             .number = number});
  }

  mutable std::mutex mutex_;
  std::shared_ptr<const Keys> keys_;  // always replaced as a whole
};

}  // namespace tributary::manager
