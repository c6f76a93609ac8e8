#pragma once
// Blocking collectives: each goes by libtributary, or is passed on.
#include <chrono>

#include "client/plugins/mpi/call.h"

namespace tributary::mpi {

/// Carries out one blocking collective. `make` returns its call for a communicator; `pass_on` makes the same call by
/// MPI. `bytes` is a bound that costs nothing to compute: smaller calls go by MPI at once.
template <class Make, class PassOn>
int blocking(Collective collective, MPI_Comm comm, std::size_t bytes, const Make& make, const PassOn& pass_on) {
  if (!may_take(bytes)) {
    count_call(collective, Way::mpi, bytes);
    return pass_on();
  }
  Communicator* const communicator = Communicator::of(comm);
  const auto call = communicator == nullptr ? std::nullopt : make(*communicator);
  const auto choice = call ? communicator->choose(collective, call->bytes) : Communicator::Choice{};
  count_call(collective, choice.way, bytes);
  const auto begin = std::chrono::steady_clock::now();
  const int code = choice.way == Way::tributary ? carry_out(*call, *communicator, comm) : pass_on();
  if (choice.trials != nullptr) {
    choice.trials->count(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return code;
}

/// Returns the bytes of `count` elements of a type; 0 if the arguments are wrong.
[[nodiscard]] std::size_t bytes_of(int count, MPI_Datatype type);

// The collectives. `pass_on` makes the same call by MPI, with the program's own arguments.
template <class PassOn>
int all_reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, PassOn pass_on) {
  return blocking(
      Collective::all_reduce, comm, bytes_of(count, type),
      [&](const Communicator&) { return all_reduce_call(send, recv, count, type, op); }, pass_on);
}

template <class PassOn>
int reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm,
           PassOn pass_on) {
  return blocking(
      Collective::reduce, comm, bytes_of(count, type),
      [&](const Communicator& on) { return reduce_call(send, recv, count, type, op, root, on); }, pass_on);
}

template <class PassOn>
int broadcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, PassOn pass_on) {
  return blocking(
      Collective::broadcast, comm, bytes_of(count, type),
      [&](const Communicator& on) { return broadcast_call(buffer, count, type, root, on); }, pass_on);
}

template <class PassOn>
int barrier(MPI_Comm comm, PassOn pass_on) {
  return blocking(Collective::barrier, comm, 0, [](const Communicator&) { return barrier_call(); }, pass_on);
}

template <class PassOn>
int reduce_scatter_block(const void* send, void* recv, int recvcount, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                         PassOn pass_on) {
  int ranks = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_size(comm, &ranks);
  return blocking(
      Collective::reduce_scatter, comm, bytes_of(recvcount, type) * static_cast<std::size_t>(ranks),
      [&](const Communicator& on) { return reduce_scatter_call(send, recv, recvcount, type, op, on); }, pass_on);
}

/// Returns the count that all ranks get; -1 if ranks get different counts.
[[nodiscard]] int equal_count(const int* recvcounts, MPI_Comm comm);

template <class PassOn>
int reduce_scatter(const void* send, void* recv, const int* recvcounts, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   PassOn pass_on) {
  const int count = equal_count(recvcounts, comm);
  return reduce_scatter_block(send, recv, count, type, op, comm, pass_on);
}

template <class PassOn>
int all_gather(const GatherArguments& arguments, MPI_Comm comm, PassOn pass_on) {
  int ranks = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_size(comm, &ranks);
  return blocking(
      Collective::all_gather, comm, bytes_of(arguments.recvcount, arguments.recvtype) * static_cast<std::size_t>(ranks),
      [&](const Communicator& on) { return all_gather_call(arguments, on); }, pass_on);
}

}  // namespace tributary::mpi
