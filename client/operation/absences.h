#pragma once
// The times when this process itself did not run, because it or its machine was stopped. A process that was away cannot
// judge which peer was late: its peers may have sent messages meanwhile, which it has not read yet.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "tributary/transport/channel.h"

namespace tributary::client {

/// A record of absences: a waiting thread calls look() many times a second, with the time. One thread uses it.
class Absences {
 public:
  using Duration = transport::Duration;
  using TimePoint = transport::TimePoint;

  /// Starts the record: the thread had no reason to look at the clock before `now`.
  void begin(TimePoint now) noexcept { looked_at_ = now; }
  /// Returns how long this process was away since the previous look; mostly zero. Call begin() first.
  Duration look(TimePoint now) noexcept {
    const TimePoint before = std::exchange(looked_at_, now);
    if (before == TimePoint{} || now - before < kShortest) return Duration::zero();
    // Forget the oldest absence; its time then counts as waiting. No wait is so long that it contains so many absences.
    if (count_ == list_.size()) {
      std::copy(list_.begin() + 1, list_.end(), list_.begin());
      --count_;
    }
    list_[count_++] = {before, now};
    return now - before;
  }

  /// Returns the moment after which this process has run for `time` in total, without its absences. A wait that began
  /// at that moment or earlier has lasted at least `time`.
  [[nodiscard]] TimePoint ago(Duration time, TimePoint now) const noexcept {
    for (std::size_t i = count_; i > 0 && now - list_[i - 1].end < time; --i) {
      time -= now - list_[i - 1].end;
      now = list_[i - 1].begin;
    }
    return now - time;
  }

 private:
  // The shortest absence: longer than any turn of work, and much shorter than every time-out.
  static constexpr Duration kShortest = std::chrono::seconds(1);
  struct Absence {
    TimePoint begin, end;
  };

  TimePoint looked_at_{};
  std::array<Absence, 32> list_{};
  std::size_t count_ = 0;
};

}  // namespace tributary::client
