// MPI's collectives for Fortran, for Open MPI.
#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/fortran.h"

namespace mpi = tributary::mpi;
using mpi::fortran::clear;
using mpi::fortran::Integer;
using mpi::fortran::store;

// Open MPI compares addresses of arguments with the addresses of these variables.
extern "C" {
extern int mpi_fortran_in_place_;
extern int mpi_fortran_bottom_;
}

namespace {

void* buffer_of(void* argument) {
  if (argument == &mpi_fortran_in_place_) return MPI_IN_PLACE;
  return argument == &mpi_fortran_bottom_ ? MPI_BOTTOM : argument;
}

MPI_Comm comm_of(const MPI_Fint* comm) {
  return PMPI_Comm_f2c(*comm);
}

MPI_Datatype type_of(const MPI_Fint* type) {
  return PMPI_Type_f2c(*type);
}

MPI_Op op_of(const MPI_Fint* op) {
  return PMPI_Op_f2c(*op);
}

/// Returns what a rank gives. In place MPI does not read the other arguments.
mpi::Sent sent_of(void* buffer, const MPI_Fint* count, const MPI_Fint* type) {
  if (buffer_of(buffer) == MPI_IN_PLACE) return {MPI_IN_PLACE, 0, MPI_DATATYPE_NULL};
  return {buffer_of(buffer), *count, type_of(type)};
}

}  // namespace

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
