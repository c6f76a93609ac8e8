#pragma once
// How a rank waits for another of its host: it spins while the other is surely running, gives the core away where ranks
// outnumber cores, and sleeps on a futex when it takes long. Nobody is woken who has not said that he sleeps.
#include <atomic>
#include <chrono>
#include <cstdint>

#include "client/collectives/local/layout.h"

namespace tributary::client::local {

using TimePoint = std::chrono::steady_clock::time_point;

/// Cores that this thread may run on.
[[nodiscard]] std::uint32_t usable_cores() noexcept;

/// One core spends this on a turn of a loop that waits for another one.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// The words of one group. Any thread.
class Bell {
 public:
  explicit Bell(ArenaHeader& header) noexcept;

  /// Stores `value` for everyone to see, and wakes those who sleep. It costs no fence where the kernel offers a barrier
  /// to those who go to sleep (membarrier): between the store and the load below, theirs stands in.
  template <class T>
  void publish(std::atomic<T>& word, T value) noexcept {
    if (fenced_) [[unlikely]] {
      word.exchange(value, std::memory_order_seq_cst);
    } else {
      word.store(value, std::memory_order_release);  // pairs with the acquire of whoever waits for it
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    nudge();
  }
  /// Wakes those who sleep, if anybody does.
  void nudge() noexcept {
    if (header_.sleepers.load(std::memory_order_seq_cst) != 0) [[unlikely]]
      ring();
  }
  void ring() noexcept;

  /// Sleeps until the bell rings, at most for `limit`, unless `ready()` by then.
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

/// One wait, from its first turn to its last.
class Wait {
 public:
  /// `crowded`: more ranks than cores, so that whoever is waited for may need this core.
  Wait(Bell& bell, bool crowded) noexcept : bell_(bell), crowded_(crowded) {}

  /// After a turn that found nothing. True now and then: time to look whether something is wrong.
  template <class Ready>
  [[nodiscard]] bool pause(Ready ready) noexcept {
    ++turns_;
    if (turns_ <= (crowded_ ? kTurnsCrowded : kTurns)) {
      if (turns_ > kTurnsBare) relax();
      return false;
    }
    return rest() && (bell_.sleep(nap(), ready), true);
  }
  /// Something was found: the next wait begins afresh.
  void again() noexcept { turns_ = rests_ = naps_ = 0; }

 private:
  static constexpr std::uint32_t kTurnsBare = 64;
  static constexpr std::uint32_t kTurns = 2000;
  static constexpr std::uint32_t kTurnsCrowded = 16;
  static constexpr std::chrono::milliseconds kYieldTime{2};
  /// Gives the core away; true once that has gone on for long.
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
