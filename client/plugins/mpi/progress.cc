#include "client/plugins/mpi/progress.h"

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "client/plugins/mpi/mpi.h"
#include "client/plugins/mpi/turns.h"

namespace tributary::mpi {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// A tag that programs hardly use: the smallest upper bound that MPI allows. A match would do no harm.
constexpr int kTag = 32767;

thread_local bool turns_here = false;
thread_local Turns turns;

/// Turns MPI, unless the wait has only begun. Returns the time until the next turn.
std::int64_t turn_and_pause(void* /*context*/, std::int64_t waited) {
  if (!turns_here) return kNever;
  return waited == 0 ? turns.begin() : turns.run(&turn_mpi);
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
    std::this_thread::sleep_for(std::chrono::nanoseconds(Turns::kPauseNanoseconds));
  }
  worker.join();
}

}  // namespace tributary::mpi
