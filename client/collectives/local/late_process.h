#pragma once
// Looks at the process of a rank for which this rank waits in shared memory: is it stopped, or does its main thread
// wait for a processor?
#include <chrono>
#include <cstdint>
#include <optional>

#include "tributary/protocol/late_rank.h"

namespace tributary::client::local {

/// One thread uses it.
class LateProcess {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;

  /// The time for which a thread ran, and for which it waited for a processor, since it began.
  struct Times {
    Duration ran{}, waited{};
  };

  /// Begins to look at a rank, if it does not look at this rank yet. `descriptor`: a pidfd of the rank's process.
  void look(std::uint32_t rank, int descriptor, TimePoint now);
  /// Returns LateCause::silent if the process is stopped, LateCause::no_cpu if the thread has waited for a processor
  /// for much of the time since look(); else `otherwise`.
  [[nodiscard]] LateCause cause(std::uint32_t rank, int descriptor, TimePoint now, LateCause otherwise) const;

 private:
  struct Seen {
    std::uint32_t rank;
    TimePoint at;
    std::optional<Times> times;
  };
  std::optional<Seen> seen_;
};

}  // namespace tributary::client::local
