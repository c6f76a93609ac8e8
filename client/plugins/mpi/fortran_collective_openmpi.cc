// MPI's collectives for Fortran, for Open MPI.
#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/exchange.h"
#include "client/plugins/mpi/fortran_arguments_openmpi.h"

namespace mpi = tributary::mpi;
using mpi::fortran::buffer_of;
using mpi::fortran::clear;
using mpi::fortran::comm_of;
using mpi::fortran::Integer;
using mpi::fortran::op_of;
using mpi::fortran::sent_of;
using mpi::fortran::store;
using mpi::fortran::type_of;

FORTRAN_CALL(allreduce, (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, count, type, op, comm, error)) {
  clear(error);
  const auto form = mpi::all_reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(allreduce, send, recv, count, type, op, comm, error)));
}

FORTRAN_CALL(reduce,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer root, Integer comm,
              Integer error),
             (send, recv, count, type, op, root, comm, error)) {
  clear(error);
  const auto form =
      mpi::reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), *root, comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(reduce, send, recv, count, type, op, root, comm, error)));
}

FORTRAN_CALL(bcast, (void* buffer, Integer count, Integer type, Integer root, Integer comm, Integer error),
             (buffer, count, type, root, comm, error)) {
  clear(error);
  const auto form = mpi::broadcast(buffer_of(buffer), *count, type_of(type), *root, comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(bcast, buffer, count, type, root, comm, error)));
}

FORTRAN_CALL(reduce_scatter,
             (void* send, void* recv, Integer counts, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, counts, type, op, comm, error)) {
  clear(error);
  const auto form =
      mpi::reduce_scatter(buffer_of(send), buffer_of(recv), counts, type_of(type), op_of(op), comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(reduce_scatter, send, recv, counts, type, op, comm, error)));
}

FORTRAN_CALL(reduce_scatter_block,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, count, type, op, comm, error)) {
  clear(error);
  const auto form =
      mpi::reduce_scatter_block(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(reduce_scatter_block, send, recv, count, type, op, comm, error)));
}

FORTRAN_CALL(allgather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)) {
  clear(error);
  const auto form = mpi::all_gather(sent_of(send, sendcount, sendtype),
                                    {buffer_of(recv), *recvcount, type_of(recvtype)}, comm_of(comm));
  store(error, mpi::blocking(
                   form, FORTRAN_PASS(allgather, send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)));
}

FORTRAN_CALL(allgatherv,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcounts, Integer displacements,
              Integer recvtype, Integer comm, Integer error),
             (send, sendcount, sendtype, recv, recvcounts, displacements, recvtype, comm, error)) {
  clear(error);
  const auto form = mpi::all_gather_v(sent_of(send, sendcount, sendtype), buffer_of(recv), recvcounts, displacements,
                                      type_of(recvtype), comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(allgatherv, send, sendcount, sendtype, recv, recvcounts, displacements,
                                                recvtype, comm, error)));
}

FORTRAN_CALL(gather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer root, Integer comm, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, error)) {
  clear(error);
  const auto form = mpi::gather(sent_of(send, sendcount, sendtype), {buffer_of(recv), *recvcount, type_of(recvtype)},
                                *root, comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(gather, send, sendcount, sendtype, recv, recvcount, recvtype, root,
                                                comm, error)));
}

FORTRAN_CALL(scatter,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer root, Integer comm, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, error)) {
  clear(error);
  const mpi::Sent result = sent_of(recv, recvcount, recvtype);  // at the root `recv` may be MPI_IN_PLACE
  const auto form = mpi::scatter({buffer_of(send), *sendcount, type_of(sendtype)},
                                 {buffer_of(recv), result.count, result.type}, *root, comm_of(comm));
  store(error, mpi::blocking(form, FORTRAN_PASS(scatter, send, sendcount, sendtype, recv, recvcount, recvtype, root,
                                                comm, error)));
}

FORTRAN_CALL(alltoall,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)) {
  clear(error);
  const auto form = mpi::all_to_all(sent_of(send, sendcount, sendtype),
                                    {buffer_of(recv), *recvcount, type_of(recvtype)}, comm_of(comm));
  store(error,
        mpi::blocking(form, FORTRAN_PASS(alltoall, send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)));
}

FORTRAN_CALL(alltoallv,
             (void* send, Integer sendcounts, Integer from, Integer sendtype, void* recv, Integer recvcounts,
              Integer to, Integer recvtype, Integer comm, Integer error),
             (send, sendcounts, from, sendtype, recv, recvcounts, to, recvtype, comm, error)) {
  clear(error);
  const mpi::Portions<MPI_Fint, MPI_Fint> sent{buffer_of(send), sendcounts, from, type_of(sendtype)};
  const mpi::Portions<MPI_Fint, MPI_Fint> received{buffer_of(recv), recvcounts, to, type_of(recvtype)};
  store(error, mpi::all_to_all_v(sent, received, comm_of(comm), [&](const MPI_Fint* sends, const MPI_Fint* receives) {
          return FORTRAN_PASS(alltoallv, send, const_cast<Integer>(sends), from, sendtype, recv,
                              const_cast<Integer>(receives), to, recvtype, comm, error)();
        }));
}
