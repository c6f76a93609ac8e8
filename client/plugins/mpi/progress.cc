#include "client/plugins/mpi/progress.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "client/plugins/mpi/mpi.h"

namespace tributary::mpi {
namespace {

// MPI gets a turn after these times while this rank waits: soon at first, and then seldom. Eight ranks on two cores
// lost a sixth of their rate with a turn in every 100 us.
constexpr std::int64_t kTurnNanoseconds = 100'000;
constexpr std::int64_t kTurnNanosecondsMax = 1'600'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// A turn that takes longer than this has moved data, or has shared its core: the next turn comes soon.
constexpr auto kBusyTurn = std::chrono::microseconds(20);
// A tag that programs hardly use: the smallest upper bound that MPI allows. A match would do no harm.
constexpr int kTag = 32767;

thread_local bool turns_here = false;
thread_local std::int64_t pause_here = kTurnNanoseconds;

/// Turns MPI, unless the wait has only begun. Returns the time until the next turn.
std::int64_t turn_and_pause(void* /*context*/, std::int64_t waited) {
  if (!turns_here) return kNever;
  const auto begin = std::chrono::steady_clock::now();
  if (waited != 0) turn_mpi();
  const bool soon = waited == 0 || std::chrono::steady_clock::now() - begin > kBusyTurn;
  pause_here = soon ? kTurnNanoseconds : std::min(2 * pause_here, kTurnNanosecondsMax);
  return pause_here;
}

}  // namespace

void turn_mpi() {
  int flag = 0;
  PMPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

std::optional<tributary_status> wait_a_while(tributary_request* request, std::int64_t nanoseconds) {
  if (nanoseconds != 0) {
    const tributary_status waited = tributary_wait(request, nanoseconds);
    if (waited != TRIBUTARY_ERROR_TIMED_OUT) return waited;
    // Either this wait has ended, or the operation has ended with this status; its request then no longer exists.
  }
  int done = 0;
  const tributary_status tested = tributary_test(request, &done);
  if (nanoseconds != 0 && tested == TRIBUTARY_ERROR_BAD_ARGUMENT) return TRIBUTARY_ERROR_TIMED_OUT;
  return done != 0 ? std::optional(tested) : std::nullopt;
}

TurningMpi::TurningMpi() noexcept {
  turns_here = true;
}

TurningMpi::~TurningMpi() {
  turns_here = false;
}

void turn_mpi_by(tributary_config& config) {
  config.while_waiting = &turn_and_pause;
}

void run_and_turn_mpi(const std::function<void()>& work) {
  std::atomic<bool> done{false};
  std::thread worker([&] {
    work();
    done.store(true, std::memory_order_release);  // pairs with the loop below
  });
  while (!done.load(std::memory_order_acquire)) {
    turn_mpi();
    std::this_thread::sleep_for(std::chrono::nanoseconds(kTurnNanoseconds));
  }
  worker.join();
}

}  // namespace tributary::mpi
