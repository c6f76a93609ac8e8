#include "client/plugins/mpi/call.h"

#include <cstring>
#include <vector>

#include "client/plugins/mpi/contiguous.h"
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

std::optional<Reduction> reduction_of(int count, MPI_Datatype type, MPI_Op op) {
  if (count <= 0) return std::nullopt;
  const auto element = element_of(type);
  if (!element) return std::nullopt;
  const auto known = op_of(op, *element);
  if (!known) return std::nullopt;
  return Reduction{.element = *element, .op = *known};
}

bool good_root(int root, const Communicator& communicator) {
  return root >= 0 && root < communicator.size();
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

std::optional<Call> all_reduce_call(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op) {
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

std::optional<Call> reduce_call(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root,
                                const Communicator& communicator) {
  const auto reduction = reduction_of(count, type, op);
  if (!reduction || !good_root(root, communicator)) return std::nullopt;
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

std::optional<Call> broadcast_call(void* buffer, int count, MPI_Datatype type, int root,
                                   const Communicator& communicator) {
  const std::size_t bytes_of_one = Contiguous::bytes_of(type);
  if (count <= 0 || bytes_of_one == 0 || !good_root(root, communicator)) return std::nullopt;
  const auto elements = static_cast<std::size_t>(count);
  const std::size_t bytes = elements * bytes_of_one;
  if (bytes > Contiguous::kBytesMax) return std::nullopt;
  const auto data = std::make_shared<Contiguous>(buffer, elements, type, bytes_of_one);
  const bool here = communicator.rank() == root;
  return Call{.collective = Collective::broadcast,
              .bytes = bytes,
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    if (here && data->load(0, elements) != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    return tributary_broadcast(data->bytes(), data->bytes(), bytes, TRIBUTARY_UINT8, root, comm,
                                               request);
                  },
              .finish = [=] { return here ? MPI_SUCCESS : data->store(); }};
}

std::optional<Call> barrier_call() {
  return Call{.collective = Collective::barrier, .start = [](tributary_comm* comm, tributary_request** request) {
                return tributary_barrier(comm, request);
              }};
}

std::optional<Call> reduce_scatter_call(const void* send, void* recv, int recvcount, MPI_Datatype type, MPI_Op op,
                                        const Communicator& communicator) {
  const auto reduction = reduction_of(recvcount, type, op);
  if (!reduction) return std::nullopt;
  const Reduction of = *reduction;
  const auto elements = static_cast<std::size_t>(recvcount);
  const std::size_t part = elements * of.element.bytes;
  // In place, MPI wants this rank's part at the begin of the input, where libtributary takes part 0 of the input.
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

std::optional<Call> all_gather_call(const GatherArguments& arguments, const Communicator& communicator) {
  const std::size_t bytes_of_one = Contiguous::bytes_of(arguments.recvtype);
  if (arguments.recvcount <= 0 || bytes_of_one == 0) return std::nullopt;
  const auto ranks = static_cast<std::size_t>(communicator.size());
  const auto elements = static_cast<std::size_t>(arguments.recvcount);
  const std::size_t part = elements * bytes_of_one;
  if (part * ranks > Contiguous::kBytesMax) return std::nullopt;
  const bool in_place = arguments.send == MPI_IN_PLACE;
  const std::size_t first = static_cast<std::size_t>(communicator.rank()) * elements;
  const auto whole = std::make_shared<Contiguous>(arguments.recv, ranks * elements, arguments.recvtype, bytes_of_one);
  std::shared_ptr<Contiguous> own;
  const auto sendcount = in_place ? 0 : static_cast<std::size_t>(arguments.sendcount);
  if (!in_place) {
    const std::size_t of_one = Contiguous::bytes_of(arguments.sendtype);
    own = std::make_shared<Contiguous>(const_cast<void*>(arguments.send), sendcount, arguments.sendtype, of_one);
  }
  return Call{.collective = Collective::all_gather,
              .bytes = part * ranks,
              .start =
                  [=](tributary_comm* comm, tributary_request** request) {
                    const int loaded = in_place ? whole->load(first, elements) : own->load(0, sendcount);
                    if (loaded != MPI_SUCCESS) return TRIBUTARY_ERROR_INTERNAL;
                    const std::byte* const input = in_place ? whole->bytes() + first * bytes_of_one : own->bytes();
                    return tributary_all_gather(input, whole->bytes(), part, TRIBUTARY_UINT8, comm, request);
                  },
              .finish = [=] { return whole->store(); }};
}

int carry_out(const Call& call, const Communicator& communicator, MPI_Comm comm) {
  tributary_request* request = nullptr;
  tributary_status status = call.start(communicator.tributary(), &request);
  if (status == TRIBUTARY_OK) status = wait_and_turn_mpi(request);
  if (status != TRIBUTARY_OK) return told(code_of(status, tributary_last_error(communicator.tributary())), comm);
  return call.finish ? told(call.finish(), comm) : MPI_SUCCESS;
}

}  // namespace tributary::mpi
