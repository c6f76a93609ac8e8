#include "client/plugins/mpi/call.h"

#include <cstring>
#include <vector>

#include "client/plugins/mpi/errors.h"
#include "client/plugins/mpi/job.h"
#include "client/plugins/mpi/pairs.h"
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

using Numbers = std::vector<std::uint64_t>;

// Pairs travel as whole numbers. Their memory is allocated at the start, so calls that go by MPI need none.

Call all_reduce_pairs(const Pairs& pairs, const void* input, void* output, std::size_t count) {
  const auto numbers = std::make_shared<Numbers>();
  return Call{.collective = Collective::all_reduce,
              .bytes = count * sizeof(Numbers::value_type),
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    pairs.load(input, count, *numbers);
                    return tributary_all_reduce(numbers->data(), numbers->data(), count, TRIBUTARY_UINT64, pairs.op(),
                                                comm, request);
                  },
              .finish =
                  [=] {
                    pairs.store(*numbers, count, output);
                    return MPI_SUCCESS;
                  }};
}

/// `output`: null on all ranks but the root.
Call reduce_pairs(const Pairs& pairs, const void* input, void* output, std::size_t count, int root) {
  const auto numbers = std::make_shared<Numbers>();
  return Call{.collective = Collective::reduce,
              .bytes = count * sizeof(Numbers::value_type),
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    pairs.load(input, count, *numbers);
                    return tributary_reduce(numbers->data(), output == nullptr ? nullptr : numbers->data(), count,
                                            TRIBUTARY_UINT64, pairs.op(), root, comm, request);
                  },
              .finish =
                  [=] {
                    if (output != nullptr) pairs.store(*numbers, count, output);
                    return MPI_SUCCESS;
                  }};
}

Call reduce_scatter_pairs(const Pairs& pairs, const void* input, void* output, std::size_t count,
                          const Communicator& communicator) {
  const auto numbers = std::make_shared<Numbers>();
  const auto part = std::make_shared<Numbers>();
  const std::size_t all = count * static_cast<std::size_t>(communicator.size());
  return Call{.collective = Collective::reduce_scatter,
              .bytes = all * sizeof(Numbers::value_type),
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    pairs.load(input, all, *numbers);
                    part->resize(count);
                    return tributary_reduce_scatter(numbers->data(), part->data(), count, TRIBUTARY_UINT64, pairs.op(),
                                                    comm, request);
                  },
              .finish =
                  [=] {
                    pairs.store(*part, count, output);
                    return MPI_SUCCESS;
                  }};
}

}  // namespace

bool may_take(std::size_t bytes) noexcept {
  const Settings* const settings = job_settings();
  return settings != nullptr && bytes >= settings->bytes_min;
}

std::optional<Call> all_reduce_call(const void* send, void* recv, Count count, MPI_Datatype type, MPI_Op op) {
  const auto pairs = count <= 0 ? std::nullopt : Pairs::of(type, op);
  if (pairs) return all_reduce_pairs(*pairs, input_of(send, recv), recv, static_cast<std::size_t>(count));
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
  if (count <= 0 || !communicator.has(root)) return std::nullopt;
  const auto elements = static_cast<std::size_t>(count);
  const bool here = communicator.rank() == root;
  const void* const input = here ? input_of(send, recv) : send;
  void* const output = here ? recv : nullptr;
  if (const auto pairs = Pairs::of(type, op)) return reduce_pairs(*pairs, input, output, elements, root);
  const auto reduction = reduction_of(count, type, op);
  if (!reduction) return std::nullopt;
  const Reduction of = *reduction;
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
  if (recvcount <= 0) return std::nullopt;
  const auto elements = static_cast<std::size_t>(recvcount);
  if (const auto pairs = Pairs::of(type, op)) {
    return reduce_scatter_pairs(*pairs, input_of(send, recv), recv, elements, communicator);
  }
  const auto reduction = reduction_of(recvcount, type, op);
  if (!reduction) return std::nullopt;
  const Reduction of = *reduction;
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
