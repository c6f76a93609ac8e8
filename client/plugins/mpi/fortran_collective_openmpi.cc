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

}  // namespace

FORTRAN_CALL(allreduce, (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, count, type, op, comm, error)) {
  clear(error);
  store(error, mpi::all_reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm),
                               FORTRAN_PASS(allreduce, send, recv, count, type, op, comm, error)));
}

FORTRAN_CALL(reduce,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer root, Integer comm,
              Integer error),
             (send, recv, count, type, op, root, comm, error)) {
  clear(error);
  store(error, mpi::reduce(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), *root, comm_of(comm),
                           FORTRAN_PASS(reduce, send, recv, count, type, op, root, comm, error)));
}

FORTRAN_CALL(bcast, (void* buffer, Integer count, Integer type, Integer root, Integer comm, Integer error),
             (buffer, count, type, root, comm, error)) {
  clear(error);
  store(error, mpi::broadcast(buffer_of(buffer), *count, type_of(type), *root, comm_of(comm),
                              FORTRAN_PASS(bcast, buffer, count, type, root, comm, error)));
}

FORTRAN_CALL(reduce_scatter,
             (void* send, void* recv, Integer counts, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, counts, type, op, comm, error)) {
  clear(error);
  store(error, mpi::reduce_scatter(buffer_of(send), buffer_of(recv), counts, type_of(type), op_of(op), comm_of(comm),
                                   FORTRAN_PASS(reduce_scatter, send, recv, counts, type, op, comm, error)));
}

FORTRAN_CALL(reduce_scatter_block,
             (void* send, void* recv, Integer count, Integer type, Integer op, Integer comm, Integer error),
             (send, recv, count, type, op, comm, error)) {
  clear(error);
  store(error,
        mpi::reduce_scatter_block(buffer_of(send), buffer_of(recv), *count, type_of(type), op_of(op), comm_of(comm),
                                  FORTRAN_PASS(reduce_scatter_block, send, recv, count, type, op, comm, error)));
}

FORTRAN_CALL(allgather,
             (void* send, Integer sendcount, Integer sendtype, void* recv, Integer recvcount, Integer recvtype,
              Integer comm, Integer error),
             (send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)) {
  clear(error);
  const bool in_place = buffer_of(send) == MPI_IN_PLACE;  // MPI does not read the other arguments of `send` then
  const mpi::GatherArguments arguments{
      buffer_of(send), in_place ? 0 : *sendcount, in_place ? MPI_DATATYPE_NULL : type_of(sendtype), buffer_of(recv),
      *recvcount,      type_of(recvtype)};
  store(error,
        mpi::all_gather(arguments, comm_of(comm),
                        FORTRAN_PASS(allgather, send, sendcount, sendtype, recv, recvcount, recvtype, comm, error)));
}
