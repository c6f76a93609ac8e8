// MPI's nonblocking collectives for Fortran, for Open MPI.
#include "client/plugins/mpi/exchange.h"
#include "client/plugins/mpi/fortran_arguments_openmpi.h"
#include "client/plugins/mpi/nonblocking.h"

namespace mpi = tributary::mpi;
using mpi::fortran::buffer_of;
using mpi::fortran::comm_of;
using mpi::fortran::Integer;
using mpi::fortran::op_of;
using mpi::fortran::sent_of;
using mpi::fortran::type_of;

namespace {

/// Starts one call. MPI's call in Fortran stores its request, and its code, itself.
template <class Make, class PassOn>
void start(const mpi::Form<Make>& form, Integer request, Integer error, const PassOn& pass_on) {
  mpi::fortran::clear(error);
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = mpi::nonblocking(form, &made, pass_on);
  mpi::fortran::store(error, code);
  if (made != MPI_REQUEST_NULL) *request = PMPI_Request_c2f(made);
}

}  // namespace

FORTRAN_CALL(iallreduce,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer request,
              Integer error),
             (send, recv, count, type, op, comm, request, error)) {
  const auto form = mpi::all_reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm));
  start(form, request, error, FORTRAN_PASS(iallreduce, send, recv, count, type, op, comm, request, error));
}

FORTRAN_CALL(ireduce,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer root, Integer comm,
              Integer request, Integer error),
             (send, recv, count, type, op, root, comm, request, error)) {
  const auto form =
      mpi::reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), *root, comm_of(comm));
  start(form, request, error, FORTRAN_PASS(ireduce, send, recv, count, type, op, root, comm, request, error));
}

FORTRAN_CALL(ibcast,
             (void* buffer, Integer count, Integer type, Integer root, Integer comm, Integer request, Integer error),
             (buffer, count, type, root, comm, request, error)) {
  const auto form = mpi::broadcast(buffer_of(buffer), *count, type_of(type), *root, comm_of(comm));
  start(form, request, error, FORTRAN_PASS(ibcast, buffer, count, type, root, comm, request, error));
}

FORTRAN_CALL(ireduce_scatter,
             (void* send, void* recv, Integer counts, Integer type, Integer op, Integer comm, Integer request,
              Integer error),
             (send, recv, counts, type, op, comm, request, error)) {
  const auto form =
      mpi::reduce_scatter(buffer_of(send), buffer_of(recv), counts, type_of(type), op_of(op), comm_of(comm));
  start(form, request, error, FORTRAN_PASS(ireduce_scatter, send, recv, counts, type, op, comm, request, error));
}

FORTRAN_CALL(ireduce_scatter_block,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer request,
              Integer error),
             (send, recv, count, type, op, comm, request, error)) {
  const auto form =
      mpi::reduce_scatter_block(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm));
  start(form, request, error, FORTRAN_PASS(ireduce_scatter_block, send, recv, count, type, op, comm, request, error));
}

FORTRAN_CALL(iallgather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, request, error)) {
  const auto form = mpi::all_gather(sent_of(send, sendcount, sendtype),
                                    {buffer_of(recv), *recvcount, type_of(recvtype)}, comm_of(comm));
  start(form, request, error,
        FORTRAN_PASS(iallgather, send, sendcount, sendtype, recv, recvcount, recvtype, comm, request, error));
}

FORTRAN_CALL(iallgatherv,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcounts, Integer displacements,
              Integer recvtype, Integer comm, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcounts, displacements, recvtype, comm, request, error)) {
  const auto form = mpi::all_gather_v(sent_of(send, sendcount, sendtype), buffer_of(recv), recvcounts, displacements,
                                      type_of(recvtype), comm_of(comm));
  start(form, request, error,
        FORTRAN_PASS(iallgatherv, send, sendcount, sendtype, recv, recvcounts, displacements, recvtype, comm, request,
                     error));
}

FORTRAN_CALL(igather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer root, Integer comm, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request, error)) {
  const auto form = mpi::gather(sent_of(send, sendcount, sendtype), {buffer_of(recv), *recvcount, type_of(recvtype)},
                                *root, comm_of(comm));
  start(form, request, error,
        FORTRAN_PASS(igather, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request, error));
}

FORTRAN_CALL(iscatter,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer root, Integer comm, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request, error)) {
  const mpi::Sent result = sent_of(recv, recvcount, recvtype);  // at the root `recv` may be MPI_IN_PLACE
  const auto form = mpi::scatter({buffer_of(send), *sendcount, type_of(sendtype)},
                                 {buffer_of(recv), result.count, result.type}, *root, comm_of(comm));
  start(form, request, error,
        FORTRAN_PASS(iscatter, send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request, error));
}

FORTRAN_CALL(ialltoall,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer request, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, request, error)) {
  const auto form = mpi::all_to_all(sent_of(send, sendcount, sendtype),
                                    {buffer_of(recv), *recvcount, type_of(recvtype)}, comm_of(comm));
  start(form, request, error,
        FORTRAN_PASS(ialltoall, send, sendcount, sendtype, recv, recvcount, recvtype, comm, request, error));
}

FORTRAN_CALL(ialltoallv,
             (void* send, Integer sendcounts, Integer from, Integer sendtype, void* recv, Integer recvcounts,
              Integer to, Integer recvtype, Integer comm, Integer request, Integer error),
             (send, sendcounts, from, sendtype, recv, recvcounts, to, recvtype, comm, request, error)) {
  mpi::fortran::clear(error);
  const mpi::Portions<MPI_Fint, MPI_Fint> sent{buffer_of(send), sendcounts, from, type_of(sendtype)};
  const mpi::Portions<MPI_Fint, MPI_Fint> received{buffer_of(recv), recvcounts, to, type_of(recvtype)};
  const auto pass_on = [&](const MPI_Fint* sends, const MPI_Fint* receives, MPI_Request* of_mpi) {
    MPI_Fint handle = 0;
    const int code = FORTRAN_PASS(ialltoallv, send, const_cast<Integer>(sends), from, sendtype, recv,
                                  const_cast<Integer>(receives), to, recvtype, comm, &handle, error)();
    if (!mpi::fortran::failed(error)) *of_mpi = PMPI_Request_f2c(handle);
    return code;
  };
  MPI_Request made = MPI_REQUEST_NULL;
  mpi::fortran::store(error, mpi::start_all_to_all_v(sent, received, comm_of(comm), &made, pass_on));
  if (made != MPI_REQUEST_NULL) *request = PMPI_Request_c2f(made);
}

FORTRAN_CALL(ibarrier, (Integer comm, Integer request, Integer error), (comm, request, error)) {
  start(mpi::barrier(comm_of(comm)), request, error, FORTRAN_PASS(ibarrier, comm, request, error));
}
