#include "client/collectives/local/waiting.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace tributary::client::local {
namespace {

long futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value, const timespec* limit) noexcept {
  return syscall(SYS_futex, &word, what, value, limit, nullptr, 0);
}

/// Registers this process for membarrier, once: the registration holds for the process, and so for all its groups.
bool registered() noexcept {
  static const bool ok = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return ok;
}

}  // namespace

std::uint32_t usable_cores() noexcept {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return static_cast<std::uint32_t>(CPU_COUNT(&cores));
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<std::uint32_t>(online) : 1;
}

Bell::Bell(ArenaHeader& header) noexcept : header_(header), fenced_(!registered()) {}

void Bell::ring() noexcept {
  header_.wake.fetch_add(1, std::memory_order_seq_cst);
  futex(header_.wake, FUTEX_WAKE, INT_MAX, nullptr);
}

// Runs a memory barrier in every running thread of every registered process. After it, each of these threads sees this
// thread's `sleepers`, or this thread sees the value that the other thread has published.
void Bell::make_others_see() const noexcept {
  if (!fenced_) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

void Bell::wait(std::uint32_t seen, std::chrono::nanoseconds limit) noexcept {
  const timespec at_most{.tv_sec = limit.count() / 1'000'000'000, .tv_nsec = limit.count() % 1'000'000'000};
  futex(header_.wake, FUTEX_WAIT, seen, &at_most);
}

// Decides by the clock, not by the number of yields: on a busy machine one yield can take as long as the time slices of
// all other threads together.
bool Wait::rest() noexcept {
  const TimePoint now = std::chrono::steady_clock::now();
  if (rests_++ == 0) resting_since_ = now;
  if (now - resting_since_ >= kYieldTime) return true;
  sched_yield();
  return false;
}

// Returns the length of the next sleep. First sleeps are short: after each of them the thread looks for dead ranks.
std::chrono::nanoseconds Wait::nap() noexcept {
  return std::chrono::milliseconds(++naps_ < 20 ? 1 : 10);
}

}  // namespace tributary::client::local
