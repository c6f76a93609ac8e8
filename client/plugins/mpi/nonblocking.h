#pragma once
// Nonblocking collectives. Their requests are generalized requests of MPI, so that a program can wait for them together
// with MPI's own. They end inside the program's calls of MPI_Wait, MPI_Test and the like, on the program's threads, so
// that every level of thread support is enough.
#include <cstdint>
#include <functional>
#include <optional>

#include "client/plugins/mpi/form.h"

namespace tributary::mpi {

/// Looks whether an operation has ended, and waits for at most this time; negative: without a limit. Returns MPI's code
/// at the end, and is then not called again.
using Ended = std::function<std::optional<int>(std::int64_t nanoseconds)>;
/// Makes the request of an operation that has started on a communicator of libtributary; returns MPI's code.
[[nodiscard]] int make_request(Ended ended, tributary_comm* on, MPI_Request* request);

/// Starts a call by libtributary on its communicator `on`; returns MPI's code. Errors go to `comm`.
[[nodiscard]] int start(Call call, tributary_comm* on, MPI_Comm comm, MPI_Request* request);

/// Returns true if an operation has not ended in MPI's eyes. Only then do MPI_Wait and the like need finish_ended().
[[nodiscard]] bool any_under_way() noexcept;
/// Ends the requests of operations that have ended. If none has, waits for a moment.
void finish_ended();

/// Ends the requests of all operations on a communicator that libtributary has finalized: a program may free MPI's
/// communicator before it waits.
void finish_all(tributary_comm* on);

/// Carries out one nonblocking collective, with the same arguments as blocking().
template <class Make, class PassOn>
int nonblocking(const Form<Make>& form, MPI_Request* request, const PassOn& pass_on) {
  Communicator* const communicator = may_take(form.bytes) ? Communicator::of(form.comm) : nullptr;
  const bool goes_by_mpi = communicator == nullptr || communicator->tributary() == nullptr;
  auto call = goes_by_mpi ? std::nullopt : form.make(*communicator);
  const Way way = call ? communicator->way_without_waiting(form.collective, call->bytes) : Way::mpi;
  count_call(form.collective, way, form.bytes);
  return way == Way::tributary ? start(std::move(*call), communicator->tributary(), form.comm, request) : pass_on();
}

/// Waits by a test of MPI, such as MPI_Testall, until it says that it is done. `test` returns MPI's code, and sets its
/// argument to true when it is done; `wait` is the call of MPI that blocks.
template <class Test, class Wait>
int wait_by_tests(const Test& test, const Wait& wait) {
  while (any_under_way()) {
    finish_ended();
    bool done = false;
    const int code = test(done);
    if (code != MPI_SUCCESS || done) return code;
  }
  return wait();
}

}  // namespace tributary::mpi
