#pragma once
// When this process itself did not run, because it was stopped or its machine was. Who was away cannot tell who else
// was late: what others sent meanwhile has not been looked at yet, and may be there already.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "tributary/transport/channel.h"

namespace tributary::client {

/// Fed by every look at the clock, of a thread that looks many times a second while it waits. One thread.
class Absences {
 public:
  using Duration = transport::Duration;
  using TimePoint = transport::TimePoint;

  /// No look was due before this one.
  void begin(TimePoint now) noexcept { looked_at_ = now; }
  /// Returns how long this process was away just before; zero mostly. The first look is begin().
  Duration look(TimePoint now) noexcept {
    const TimePoint before = std::exchange(looked_at_, now);
    if (before == TimePoint{} || now - before < kShortest) return Duration::zero();
    if (count_ == list_.size()) {  // the oldest is counted as waiting again: nobody waits that long for so many
      std::copy(list_.begin() + 1, list_.end(), list_.begin());
      --count_;
    }
    list_[count_++] = {before, now};
    return now - before;
  }

  /// The moment from which until `now` this process has been there for `time`. Who has waited since then or longer has
  /// waited for `time`.
  [[nodiscard]] TimePoint ago(Duration time, TimePoint now) const noexcept {
    for (std::size_t i = count_; i > 0 && now - list_[i - 1].end < time; --i) {
      time -= now - list_[i - 1].end;
      now = list_[i - 1].begin;
    }
    return now - time;
  }

 private:
  // Longer than any turn of work, and short beside every time-out.
  static constexpr Duration kShortest = std::chrono::seconds(1);
  struct Absence {
    TimePoint begin, end;
  };

  TimePoint looked_at_{};
  std::array<Absence, 32> list_{};
  std::size_t count_ = 0;
};

}  // namespace tributary::client
