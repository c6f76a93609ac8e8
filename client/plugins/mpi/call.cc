#include "client/plugins/mpi/call.h"

#include <cstring>
#include <vector>

#include "client/plugins/mpi/errors.h"
#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/progress.h"
#include "client/plugins/mpi/types.h"

namespace tributary::mpi {
namespace {

struct Reduction {
  Element element;
  tributary_op op;
};

std::optional<Reduction> reduction_of(Count count, MPI_Datatype type, MPI_Op op) {
  if (count <= 0) return std::nullopt;
  const auto element = element_of(type);
  if (!element) return std::nullopt;
  const auto known = op_of(op, *element);
  if (!known) return std::nullopt;
  return Reduction{.element = *element, .op = *known};
}

/// Returns the memory that holds the input: `recv` if the call is in place.
const void* input_of(const void* send, const void* recv) {
  return send == MPI_IN_PLACE ? recv : send;
}

}  // namespace

bool may_take(std::size_t bytes) noexcept {
  const Settings* const settings = job_settings();
  return settings != nullptr && bytes >= settings->bytes_min;
}

std::optional<Call> all_reduce_call(const void* send, void* recv, Count count, MPI_Datatype type, MPI_Op op) {
  const auto reduction = reduction_of(count, type, op);
  if (!reduction) return std::nullopt;
  const auto elements = static_cast<std::size_t>(count);
  const Reduction of = *reduction;
  const void* const input = input_of(send, recv);
  return Call{.collective = Collective::all_reduce,
              .bytes = elements * of.element.bytes,
              .start = [=](tributary_comm* comm, tributary_request** request) {
                return tributary_all_reduce(input, recv, elements * of.element.per_element, of.element.dtype, of.op,
                                            comm, request);
              }};
}

std::optional<Call> reduce_call(const void* send, void* recv, Count count, MPI_Datatype type, MPI_Op op, int root,
                                const Communicator& communicator) {
  const auto reduction = reduction_of(count, type, op);
  if (!reduction || !communicator.has(root)) return std::nullopt;
  const auto elements = static_cast<std::size_t>(count);
  const Reduction of = *reduction;
  const bool here = communicator.rank() == root;
  const void* const input = here ? input_of(send, recv) : send;
  void* const output = here ? recv : nullptr;
  return Call{.collective = Collective::reduce,
              .bytes = elements * of.element.bytes,
              .start = [=](tributary_comm* comm, tributary_request** request) {
                return tributary_reduce(input, output, elements * of.element.per_element, of.element.dtype, of.op, root,
                                        comm, request);
              }};
}

std::optional<Call> barrier_call() {
  return Call{.collective = Collective::barrier, .start = [](tributary_comm* comm, tributary_request** request) {
                return tributary_barrier(comm, request);
              }};
}

std::optional<Call> reduce_scatter_call(const void* send, void* recv, Count recvcount, MPI_Datatype type, MPI_Op op,
                                        const Communicator& communicator) {
  const auto reduction = reduction_of(recvcount, type, op);
  if (!reduction) return std::nullopt;
  const Reduction of = *reduction;
  const auto elements = static_cast<std::size_t>(recvcount);
  const std::size_t part = elements * of.element.bytes;
  // In place, MPI wants this rank's part at the beginning of the input, where libtributary takes part 0 of the input.
  const auto result = std::make_shared<std::vector<std::byte>>(send == MPI_IN_PLACE ? part : 0);
  void* const output = send == MPI_IN_PLACE ? result->data() : recv;
  const void* const input = input_of(send, recv);
  return Call{.collective = Collective::reduce_scatter,
              .bytes = part * static_cast<std::size_t>(communicator.size()),
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    return tributary_reduce_scatter(input, output, elements * of.element.per_element, of.element.dtype,
                                                    of.op, comm, request);
                  },
              .finish =
                  [=] {
                    if (!result->empty()) std::memcpy(recv, result->data(), result->size());
                    return MPI_SUCCESS;
                  }};
}

int carry_out(const Call& call, const Communicator& communicator, MPI_Comm comm) {
  const TurningMpi turning;
  const tributary_status status = call.start(communicator.tributary(), nullptr);
  if (status != TRIBUTARY_OK) return told(code_of(status, tributary_last_error(communicator.tributary())), comm);
  return call.finish ? told(call.finish(), comm) : MPI_SUCCESS;
}

}  // namespace tributary::mpi
