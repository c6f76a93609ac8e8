#pragma once
// Calls of collectives, in the form in which libtributary starts them.
#include <tributary/tributary.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "client/plugins/mpi/communicator.h"

namespace tributary::mpi {

using Count = std::int64_t;  // a number of elements; holds the counts of all forms of MPI's calls

/// A call that libtributary may carry out. `start` gives its request, or waits for the end if the place of the request
/// is null; `finish` then moves the result to its place, and
/// returns MPI's code. All pointers in them stay valid until the call has ended.
struct Call {
  Collective collective{};
  std::size_t bytes = 0;  // equal on all ranks
  std::function<tributary_status(tributary_comm*, tributary_request**)> start{};
  std::function<int()> finish{};  // may be empty
};

/// Returns true if a call of this size may go by Tributary. This costs a few instructions: most calls are small.
[[nodiscard]] bool may_take(std::size_t bytes) noexcept;

/// The data that a rank sends with a collective, and the place for the data that it receives. MPI demands that all
/// ranks name the same number of bytes, but they may name them by different types.
struct Sent {
  const void* buffer;
  Count count;
  MPI_Datatype type;
};
struct Received {
  void* buffer;
  Count count;
  MPI_Datatype type;
};

using PartCounts = std::vector<Count>;     // elements of each rank's part
using Displacements = std::vector<Count>;  // in elements, one for each rank
/// The place for a part of each rank: it begins `displacements[r]` elements after the beginning of the buffer.
struct ReceivedParts {
  void* buffer;
  PartCounts counts;
  Displacements displacements;
  MPI_Datatype type;
};

// Each function returns the call, or nullopt if its arguments have no form in libtributary. Whether they have one
// follows from arguments that MPI wants to be equal on all ranks.
[[nodiscard]] std::optional<Call> all_reduce_call(const void* send, void* recv, Count count, MPI_Datatype type,
                                                  MPI_Op op);
[[nodiscard]] std::optional<Call> reduce_call(const void* send, void* recv, Count count, MPI_Datatype type, MPI_Op op,
                                              int root, const Communicator& communicator);
[[nodiscard]] std::optional<Call> broadcast_call(void* buffer, Count count, MPI_Datatype type, int root,
                                                 const Communicator& communicator);
[[nodiscard]] std::optional<Call> barrier_call();
[[nodiscard]] std::optional<Call> reduce_scatter_call(const void* send, void* recv, Count recvcount, MPI_Datatype type,
                                                      MPI_Op op, const Communicator& communicator);
[[nodiscard]] std::optional<Call> reduce_scatter_call(const void* send, void* recv, const PartCounts& counts,
                                                      MPI_Datatype type, MPI_Op op, const Communicator& communicator);
[[nodiscard]] std::optional<Call> all_gather_call(const Sent& sent, const Received& received,
                                                  const Communicator& communicator);
[[nodiscard]] std::optional<Call> all_gather_call(const Sent& sent, const ReceivedParts& received,
                                                  const Communicator& communicator);
[[nodiscard]] std::optional<Call> gather_call(const Sent& sent, const Received& received, int root,
                                              const Communicator& communicator);
[[nodiscard]] std::optional<Call> scatter_call(const Sent& sent, const Received& received, int root,
                                               const Communicator& communicator);
[[nodiscard]] std::optional<Call> all_to_all_call(const Sent& sent, const Received& received,
                                                  const Communicator& communicator);

/// Carries out a call by libtributary; returns MPI's code, which the error handler has got.
[[nodiscard]] int carry_out(const Call& call, const Communicator& communicator, MPI_Comm comm);

}  // namespace tributary::mpi
