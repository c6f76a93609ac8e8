#pragma once
// The way in which a rank waits for another rank of its host. It spins if every rank has a core, gives the core away if
// there are more ranks than cores, and sleeps on a futex when the wait is long. Only announced sleepers are woken.
#include <atomic>
#include <chrono>
#include <cstdint>

#include "client/collectives/local/layout.h"

namespace tributary::client::local {

using TimePoint = std::chrono::steady_clock::time_point;

/// Returns the number of cores that this thread may run on.
[[nodiscard]] std::uint32_t usable_cores() noexcept;

/// Tells the core that this loop waits for another core.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// The words in a group's shared memory by which ranks wake each other. Any thread may use them.
class Bell {
 public:
  explicit Bell(ArenaHeader& header) noexcept;

  /// Stores `value` for all ranks to see, and wakes the sleepers. If the kernel offers membarrier, this costs no fence:
  /// a thread that goes to sleep runs a barrier in all other threads, between their store and the load in nudge().
  template <class T>
  void publish(std::atomic<T>& word, T value) noexcept {
    if (fenced_) [[unlikely]] {
      word.exchange(value, std::memory_order_seq_cst);
    } else {
      word.store(value, std::memory_order_release);  // pairs with the acquire load of the waiting thread
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    nudge();
  }
  /// Wakes the sleepers, if there are any.
  void nudge() noexcept {
    if (header_.sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      ring();
  }
  void ring() noexcept;

  /// Sleeps until the bell rings, at most for `limit`. Does not sleep if ready() returns true.
  template <class Ready>
  void sleep(std::chrono::nanoseconds limit, Ready ready) noexcept {
    header_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    make_others_see();
    const std::uint32_t seen = header_.wake.load(std::memory_order_seq_cst);
    if (!ready()) wait(seen, limit);
    header_.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

 private:
  void make_others_see() const noexcept;
  void wait(std::uint32_t seen, std::chrono::nanoseconds limit) noexcept;

  ArenaHeader& header_;
  bool fenced_;
};

/// One wait. Each turn looks once for the awaited event.
class Wait {
 public:
  /// `crowded`: there are more ranks than cores, so the awaited rank may need this core.
  Wait(Bell& bell, bool crowded) noexcept : bell_(bell), crowded_(crowded) {}

  /// Call it after a turn that found nothing. Returns true after each sleep: the caller then looks for failures.
  template <class Ready>
  [[nodiscard]] bool pause(Ready ready) noexcept {
    ++turns_;
    if (turns_ <= (crowded_ ? kTurnsCrowded : kTurns)) {
      if (turns_ > kTurnsBare) relax();
      return false;
    }
    return rest() && (bell_.sleep(nap(), ready), true);
  }
  /// Call it after a turn that found work: the next wait starts from the beginning.
  void again() noexcept { turns_ = rests_ = naps_ = 0; }

 private:
  static constexpr std::uint32_t kTurnsBare = 64;
  static constexpr std::uint32_t kTurns = 2000;
  static constexpr std::uint32_t kTurnsCrowded = 16;
  static constexpr std::chrono::milliseconds kYieldTime{2};
  /// Gives the core away. Returns true if it has done so for kYieldTime.
  [[nodiscard]] bool rest() noexcept;
  [[nodiscard]] std::chrono::nanoseconds nap() noexcept;

  Bell& bell_;
  bool crowded_;
  std::uint32_t turns_ = 0;
  std::uint32_t rests_ = 0;
  std::uint32_t naps_ = 0;
  TimePoint resting_since_{};
};

}  // namespace tributary::client::local
