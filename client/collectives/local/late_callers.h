#pragma once
// Lines about the ranks for which the other ranks of a group in shared memory wait. The thread
// that drives the group says them, and another thread takes them to the log.
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/operation/late_line.h"

namespace tributary::client::local {

class LateCallers {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kAfter{1};   // a wait for so long is told
  static constexpr std::chrono::seconds kPause{10};  // between two warnings

  struct Line {
    std::string text;
    bool late = false;  // false: the rank is no longer late
  };

  // The thread that drives the group calls these functions.
  /// Notes that the caller has waited for the rank of this name for `time`. `others`: the number of all other ranks.
  void wait(const std::string& name, LateCause cause, std::chrono::nanoseconds time, std::uint32_t others,
            TimePoint now) {
    if (told_ && told_ != name) go_on();  // that rank has come, and another one is late now
    if (told_ || (told_at_ && now - *told_at_ < kPause)) return;
    told_ = name;
    told_at_ = now;
    add({late_line(name, {.lag = std::chrono::duration_cast<std::chrono::milliseconds>(time), .cause = cause}, others),
         true});
  }
  /// Notes that the call has gone on.
  void go_on() {
    if (told_) add({*std::exchange(told_, std::nullopt) + " is no longer late", false});
  }
  [[nodiscard]] bool told() const noexcept { return told_.has_value(); }

  /// Returns the new lines. Any thread may call it.
  [[nodiscard]] std::vector<Line> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  void add(Line line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }

  std::optional<std::string> told_;  // the rank that the lines have named
  std::optional<TimePoint> told_at_;
  std::mutex mutex_;
  std::vector<Line> lines_;  // guarded by mutex_
};

}  // namespace tributary::client::local
