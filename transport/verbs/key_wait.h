#pragma once
// Requests for connections that wait for the manager's key, as a base class of the transport's turns.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "tributary/transport/channel.h"

namespace tributary::transport::verbs {

class KeyWait {
 public:
  /// Makes look_for_key() run `call` after kKeyPause. False: too many calls wait.
  [[nodiscard]] bool look_again(std::function<void()> call, TimePoint now) {
    if (calls_.size() >= kCallsMax) return false;
    at_ = std::min(at_, now + kKeyPause);
    calls_.push_back(std::move(call));
    return true;
  }

 protected:
  /// The time of the next look; max: no call waits.
  [[nodiscard]] TimePoint next_look() const noexcept { return at_; }
  /// Runs the waiting calls if it is time; each of them may call look_again().
  void look_for_key(TimePoint now) {
    if (now < at_) return;
    at_ = TimePoint::max();
    for (const auto& call : std::exchange(calls_, {})) call();
  }
  void forget_looks() noexcept { calls_.clear(); }

 private:
  static constexpr std::size_t kCallsMax = 256;

  std::vector<std::function<void()>> calls_;
  TimePoint at_ = TimePoint::max();
};

}  // namespace tributary::transport::verbs
