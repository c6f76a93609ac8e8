#pragma once
// When MPI gets a turn while this rank waits for libtributary: seldom, but soon again once a turn has moved data.
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace tributary::mpi {

/// The pauses between the turns of one thread. Eight ranks on two cores lost a sixth of their rate with a turn in every
/// 100 us, and a fifth of it in calls of 700 us whose first turn came after 100 us. So a wait begins with the pause that
/// the wait before it has learned: a program without messages in flight while it waits has a turn in every 1.6 ms, and
/// one with such messages soon has a turn in every 100 us.
class Turns {
 public:
  static constexpr std::int64_t kPauseNanoseconds = 100'000;
  static constexpr std::int64_t kPauseNanosecondsMax = 1'600'000;

  /// Returns the pause before the first turn of a wait.
  [[nodiscard]] std::int64_t begin() const noexcept { return pause_; }
  /// Runs a turn, and returns the pause before the next one: short if the turn has moved data.
  template <class Turn>
  std::int64_t run(const Turn& turn) {
    const std::int64_t begin = processor_nanoseconds();
    turn();
    const bool busy = processor_nanoseconds() - begin > kBusyNanoseconds;
    return pause_ = busy ? kPauseNanoseconds : std::min(2 * pause_, kPauseNanosecondsMax);
  }

 private:
  // A turn that takes more of this thread's processor time has moved data. A clock would not tell, because Open MPI
  // gives up the core in a turn without data: where ranks share cores, other ranks run then, so that every turn would
  // look busy, and all ranks would go on with a turn in every 100 us.
  static constexpr std::int64_t kBusyNanoseconds = 50'000;

  static std::int64_t processor_nanoseconds() noexcept {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  }

  std::int64_t pause_ = kPauseNanoseconds;
};

}  // namespace tributary::mpi
