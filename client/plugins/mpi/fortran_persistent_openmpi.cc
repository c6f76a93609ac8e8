// MPI's persistent collectives for Fortran, for Open MPI 4, which has them under names of its own
// (MPIX_Allreduce_init).
#include "client/plugins/mpi/fortran_arguments_openmpi.h"
#include "client/plugins/mpi/persistent.h"

namespace mpi = tributary::mpi;
using mpi::fortran::buffer_of;
using mpi::fortran::comm_of;
using mpi::fortran::Integer;
using mpi::fortran::op_of;
using mpi::fortran::sent_of;
using mpi::fortran::type_of;

namespace {

/// Makes one request. MPI's call in Fortran stores its request, and its code, itself.
template <class Make, class PassOn>
void make(const mpi::Form<Make>& form, Integer request, Integer error, const PassOn& pass_on) {
  mpi::fortran::clear(error);
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = mpi::persistent(form, &made, [&]() -> int {
    pass_on();
    if (mpi::fortran::failed(error)) return *error;
    made = PMPI_Request_f2c(*request);
    return MPI_SUCCESS;
  });
  mpi::fortran::store(error, code);
}

}  // namespace

// Defines both names of a call, in the manner of FORTRAN_CALL: MPIX_NAME_init of mpif.h, and its work for mpi_f08.
#define FORTRAN_INIT(name, parameters, arguments)             \
  static void name##_init_from_fortran parameters;            \
  TRIBUTARY_MPI_ENTRY void mpix_##name##_init_ parameters {   \
    name##_init_from_fortran arguments;                       \
  }                                                           \
  TRIBUTARY_MPI_ENTRY void ompix_##name##_init_f parameters { \
    name##_init_from_fortran arguments;                       \
  }                                                           \
  static void name##_init_from_fortran parameters
#define FORTRAN_PASS_INIT(name, ...)                                           \
  [&] {                                                                        \
    static void* const function = mpi::fortran::find("pmpix_" #name "_init_"); \
    return mpi::fortran::pass(function, __VA_ARGS__);                          \
  }

FORTRAN_INIT(allreduce,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer info,
              Integer request, Integer error),
             (send, recv, count, type, op, comm, info, request, error)) {
  const auto form = mpi::all_reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm));
  make(form, request, error, FORTRAN_PASS_INIT(allreduce, send, recv, count, type, op, comm, info, request, error));
}

FORTRAN_INIT(reduce,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer root, Integer comm, Integer info,
              Integer request, Integer error),
             (send, recv, count, type, op, root, comm, info, request, error)) {
  const auto form =
      mpi::reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), *root, comm_of(comm));
  make(form, request, error, FORTRAN_PASS_INIT(reduce, send, recv, count, type, op, root, comm, info, request, error));
}

FORTRAN_INIT(bcast,
             (void* buffer, Integer count, Integer type, Integer root, Integer comm, Integer info, Integer request,
              Integer error),
             (buffer, count, type, root, comm, info, request, error)) {
  const auto form = mpi::broadcast(buffer_of(buffer), *count, type_of(type), *root, comm_of(comm));
  make(form, request, error, FORTRAN_PASS_INIT(bcast, buffer, count, type, root, comm, info, request, error));
}

FORTRAN_INIT(reduce_scatter,
             (void* send, void* recv, Integer counts, Integer type, Integer op, Integer comm, Integer info,
              Integer request, Integer error),
             (send, recv, counts, type, op, comm, info, request, error)) {
  const auto form =
      mpi::reduce_scatter(buffer_of(send), buffer_of(recv), counts, type_of(type), op_of(op), comm_of(comm));
  make(form, request, error,
       FORTRAN_PASS_INIT(reduce_scatter, send, recv, counts, type, op, comm, info, request, error));
}

FORTRAN_INIT(reduce_scatter_block,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer info,
              Integer request, Integer error),
             (send, recv, count, type, op, comm, info, request, error)) {
  const auto form =
      mpi::reduce_scatter_block(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm));
  make(form, request, error,
       FORTRAN_PASS_INIT(reduce_scatter_block, send, recv, count, type, op, comm, info, request, error));
}

FORTRAN_INIT(allgather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer info, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request, error)) {
  const auto form = mpi::all_gather(sent_of(send, sendcount, sendtype),
                                    {buffer_of(recv), *recvcount, type_of(recvtype)}, comm_of(comm));
  make(form, request, error,
       FORTRAN_PASS_INIT(allgather, send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request, error));
}

FORTRAN_INIT(allgatherv,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcounts, Integer displacements,
              Integer recvtype, Integer comm, Integer info, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcounts, displacements, recvtype, comm, info, request, error)) {
  const auto form = mpi::all_gather_v(sent_of(send, sendcount, sendtype), buffer_of(recv), recvcounts, displacements,
                                      type_of(recvtype), comm_of(comm));
  make(form, request, error,
       FORTRAN_PASS_INIT(allgatherv, send, sendcount, sendtype, recv, recvcounts, displacements, recvtype, comm, info,
                         request, error));
}

FORTRAN_INIT(gather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer root, Integer comm, Integer info, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request, error)) {
  const auto form = mpi::gather(sent_of(send, sendcount, sendtype), {buffer_of(recv), *recvcount, type_of(recvtype)},
                                *root, comm_of(comm));
  make(form, request, error,
       FORTRAN_PASS_INIT(gather, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request,
                         error));
}

FORTRAN_INIT(scatter,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer root, Integer comm, Integer info, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request, error)) {
  const mpi::Sent result = sent_of(recv, recvcount, recvtype);  // at the root `recv` may be MPI_IN_PLACE
  const auto form = mpi::scatter({buffer_of(send), *sendcount, type_of(sendtype)},
                                 {buffer_of(recv), result.count, result.type}, *root, comm_of(comm));
  make(form, request, error,
       FORTRAN_PASS_INIT(scatter, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request,
                         error));
}

FORTRAN_INIT(alltoall,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer info, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request, error)) {
  const auto form = mpi::all_to_all(sent_of(send, sendcount, sendtype),
                                    {buffer_of(recv), *recvcount, type_of(recvtype)}, comm_of(comm));
  make(form, request, error,
       FORTRAN_PASS_INIT(alltoall, send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request, error));
}

FORTRAN_INIT(barrier, (Integer comm, Integer info, Integer request, Integer error), (comm, info, request, error)) {
  const auto form = mpi::barrier(comm_of(comm));
  make(form, request, error, FORTRAN_PASS_INIT(barrier, comm, info, request, error));
}
