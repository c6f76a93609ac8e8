#pragma once
// The collectives of a program, in a form that a blocking call, a nonblocking call and a persistent request share.
#include <algorithm>
#include <span>

#include "client/plugins/mpi/call.h"

namespace tributary::mpi {

/// One collective with its arguments. `bytes` is a bound that costs little to compute: smaller calls go by MPI at once.
/// `make` returns the call for a communicator, or nullopt if the arguments have no form in libtributary.
template <class Make>
struct Form {
  Collective collective;
  MPI_Comm comm;
  std::size_t bytes;
  Make make;
};
template <class Make>
Form(Collective, MPI_Comm, std::size_t, Make) -> Form<Make>;

/// Returns the bytes of `count` elements of a type; 0 if the arguments are wrong.
[[nodiscard]] std::size_t bytes_of(Count count, MPI_Datatype type);
/// Returns the number of ranks; 0 for MPI_COMM_NULL.
[[nodiscard]] std::size_t ranks_of(MPI_Comm comm);
/// Returns true if this rank is the root. The groups of an inter-communicator, whose calls always go by MPI, have none.
[[nodiscard]] bool is_root(int root, MPI_Comm comm);
/// Returns true for a communicator of two groups.
[[nodiscard]] bool is_between_groups(MPI_Comm comm);

inline auto all_reduce(const void* send, void* recv, Count count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return Form{Collective::all_reduce, comm, bytes_of(count, type),
              [=](const Communicator&) { return all_reduce_call(send, recv, count, type, op); }};
}

inline auto reduce(const void* send, void* recv, Count count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return Form{Collective::reduce, comm, bytes_of(count, type),
              [=](const Communicator& on) { return reduce_call(send, recv, count, type, op, root, on); }};
}

inline auto broadcast(void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm) {
  return Form{Collective::broadcast, comm, bytes_of(count, type),
              [=](const Communicator& on) { return broadcast_call(buffer, count, type, root, on); }};
}

inline auto barrier(MPI_Comm comm) {
  return Form{Collective::barrier, comm, 0, [](const Communicator&) { return barrier_call(); }};
}

inline auto reduce_scatter_block(const void* send, void* recv, Count recvcount, MPI_Datatype type, MPI_Op op,
                                 MPI_Comm comm) {
  return Form{Collective::reduce_scatter, comm, bytes_of(recvcount, type) * ranks_of(comm),
              [=](const Communicator& on) { return reduce_scatter_call(send, recv, recvcount, type, op, on); }};
}

/// The counts of a collective that names one for each rank.
struct Counts {
  Count each = -1;  // the count that all ranks have; -1 if they differ
  Count sum = 0;
  Count least = 0, largest = 0;
  std::size_t ranks = 0;

  [[nodiscard]] bool differ() const noexcept { return least != largest; }
  /// Returns true if the parts may travel as parts of the size of the largest one: this takes at most twice the bytes.
  /// The answer is the same for ranks that name the same bytes by another type.
  [[nodiscard]] bool may_be_padded() const noexcept {
    return least >= 0 && largest < kOverflows && largest * static_cast<Count>(ranks) <= 2 * sum;
  }

 private:
  static constexpr Count kOverflows = Count{1} << 40;
};
template <class Integer>
[[nodiscard]] Counts counts_of(const Integer* counts, MPI_Comm comm) {
  const std::size_t ranks = counts == nullptr || is_between_groups(comm) ? 0 : ranks_of(comm);
  const std::span all(counts, ranks);
  Counts found;
  found.ranks = ranks;
  if (ranks == 0) return found;
  for (const Integer one : all) found.sum += static_cast<Count>(one);
  const auto [least, largest] = std::ranges::minmax(all);
  found.least = static_cast<Count>(least);
  found.largest = static_cast<Count>(largest);
  if (!found.differ()) found.each = found.least;
  return found;
}

template <class Integer>
auto reduce_scatter(const void* send, void* recv, const Integer* recvcounts, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm) {
  const Counts counts = counts_of(recvcounts, comm);
  return Form{counts.differ() ? Collective::reduce_scatter_v : Collective::reduce_scatter, comm,
              bytes_of(counts.sum, type), [=](const Communicator& on) -> std::optional<Call> {
                if (!counts.differ()) return reduce_scatter_call(send, recv, counts.each, type, op, on);
                if (!counts.may_be_padded()) return std::nullopt;
                const PartCounts parts(recvcounts, recvcounts + on.size());
                return reduce_scatter_call(send, recv, parts, type, op, on);
              }};
}

inline auto all_gather(const Sent& sent, const Received& received, MPI_Comm comm) {
  return Form{Collective::all_gather, comm, bytes_of(received.count, received.type) * ranks_of(comm),
              [=](const Communicator& on) { return all_gather_call(sent, received, on); }};
}

/// MPI_Allgatherv: libtributary gathers parts of one size, to any displacements.
template <class Integer, class Distance>
auto all_gather_v(const Sent& sent, void* recv, const Integer* recvcounts, const Distance* displacements,
                  MPI_Datatype type, MPI_Comm comm) {
  const Counts counts = counts_of(recvcounts, comm);
  return Form{counts.differ() ? Collective::all_gather_v : Collective::all_gather, comm, bytes_of(counts.sum, type),
              [=](const Communicator& on) -> std::optional<Call> {
                if (!counts.may_be_padded()) return std::nullopt;
                const ReceivedParts received{.buffer = recv,
                                             .counts = {recvcounts, recvcounts + on.size()},
                                             .displacements = {displacements, displacements + on.size()},
                                             .type = type};
                return all_gather_call(sent, received, on);
              }};
}

inline auto gather(const Sent& sent, const Received& received, int root, MPI_Comm comm) {
  const bool here = is_root(root, comm);  // only the root's `received` has a meaning
  const std::size_t part = is_between_groups(comm) ? 0
                           : here                  ? bytes_of(received.count, received.type)
                                                   : bytes_of(sent.count, sent.type);
  return Form{Collective::gather, comm, part * ranks_of(comm),
              [=](const Communicator& on) { return gather_call(sent, received, root, on); }};
}

inline auto scatter(const Sent& sent, const Received& received, int root, MPI_Comm comm) {
  const bool here = is_root(root, comm);  // only the root's `sent` has a meaning
  const std::size_t part = is_between_groups(comm) ? 0
                           : here                  ? bytes_of(sent.count, sent.type)
                                                   : bytes_of(received.count, received.type);
  return Form{Collective::scatter, comm, part * ranks_of(comm),
              [=](const Communicator& on) { return scatter_call(sent, received, root, on); }};
}

inline auto all_to_all(const Sent& sent, const Received& received, MPI_Comm comm) {
  return Form{Collective::all_to_all, comm, bytes_of(received.count, received.type) * ranks_of(comm),
              [=](const Communicator& on) { return all_to_all_call(sent, received, on); }};
}

}  // namespace tributary::mpi
