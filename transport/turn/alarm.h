#pragma once
// An alarm by which all other threads wake one thread. It costs no system call while that thread is awake.
//
//   the sleeper, in fall_asleep()      another thread, in ring()
//   1  sets `asleep_`                  3  sets `rung_`
//   2  reads `rung_`                   4  reads `asleep_`
//
// All four operations are sequentially consistent, so all threads see them in one order, in which 1 is before 2, and 3
// before 4. If 3 is before 2, the sleeper sees that the alarm was rung, and stays awake. If not, then 1 is before 2, 2
// before 3, and 3 before 4: the other thread sees that the sleeper sleeps, and wakes it. So at least one of the two
// threads sees the other's store. With a weaker order both might miss it, because each thread's store could be delayed
// behind its own load. Only the first thread that rings needs to wake the sleeper, which does not go to sleep again
// before take().
//
// Two processes that share memory follow the same rule (shm/shm_connection.cc): there `asleep_` and `rung_` are words
// of the shared memory.
#include <atomic>

namespace tributary::transport::turn {

class Alarm {
 public:
  // ---- Calls of any thread
  /// Rings. Returns true if the sleeper may be asleep, and the caller must wake it. The thread that calls take() sees
  /// all stores of the caller before ring().
  [[nodiscard]] bool ring() noexcept {
    return !rung_.exchange(true, std::memory_order_seq_cst) && asleep_.load(std::memory_order_seq_cst);
  }

  // ---- Calls of the sleeper
  /// Begins to sleep. Returns false if the alarm was rung: the sleeper must stay awake. wake_up() must follow in either
  /// case.
  [[nodiscard]] bool fall_asleep() noexcept {
    asleep_.store(true, std::memory_order_seq_cst);
    return !rung_.load(std::memory_order_seq_cst);
  }
  void wake_up() noexcept { asleep_.store(false, std::memory_order_relaxed); }
  /// True if the alarm was rung. The call is cheap enough for every turn, and may see a ring() a little late.
  [[nodiscard]] bool rung() const noexcept { return rung_.load(std::memory_order_relaxed); }
  /// Returns whether the alarm was rung since the last call.
  [[nodiscard]] bool take() noexcept { return rung() && rung_.exchange(false, std::memory_order_acq_rel); }

 private:
  std::atomic<bool> rung_ = false;
  std::atomic<bool> asleep_ = false;
};

}  // namespace tributary::transport::turn
