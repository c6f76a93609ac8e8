// MPI's collectives for C. MPICH's Fortran calls reach these functions, too.
#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/nonblocking.h"

namespace mpi = tributary::mpi;

TRIBUTARY_MPI_ENTRY int MPI_Allreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                                      MPI_Comm comm) {
  return mpi::all_reduce(send, recv, count, type, op, comm,
                         [&] { return PMPI_Allreduce(send, recv, count, type, op, comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Reduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root,
                                   MPI_Comm comm) {
  return mpi::reduce(send, recv, count, type, op, root, comm,
                     [&] { return PMPI_Reduce(send, recv, count, type, op, root, comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return mpi::broadcast(buffer, count, type, root, comm, [&] { return PMPI_Bcast(buffer, count, type, root, comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Barrier(MPI_Comm comm) {
  return mpi::barrier(comm, [&] { return PMPI_Barrier(comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Reduce_scatter(const void* send, void* recv, const int recvcounts[], MPI_Datatype type,
                                           MPI_Op op, MPI_Comm comm) {
  return mpi::reduce_scatter(send, recv, recvcounts, type, op, comm,
                             [&] { return PMPI_Reduce_scatter(send, recv, recvcounts, type, op, comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Reduce_scatter_block(const void* send, void* recv, int recvcount, MPI_Datatype type,
                                                 MPI_Op op, MPI_Comm comm) {
  return mpi::reduce_scatter_block(send, recv, recvcount, type, op, comm,
                                   [&] { return PMPI_Reduce_scatter_block(send, recv, recvcount, type, op, comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Allgather(const void* send, int sendcount, MPI_Datatype sendtype, void* recv, int recvcount,
                                      MPI_Datatype recvtype, MPI_Comm comm) {
  return mpi::all_gather({send, sendcount, sendtype, recv, recvcount, recvtype}, comm,
                         [&] { return PMPI_Allgather(send, sendcount, sendtype, recv, recvcount, recvtype, comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Iallreduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op,
                                       MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(
      mpi::Collective::all_reduce, comm, mpi::bytes_of(count, type), request,
      [&](const mpi::Communicator&) { return mpi::all_reduce_call(send, recv, count, type, op); },
      [&] { return PMPI_Iallreduce(send, recv, count, type, op, comm, request); });
}

TRIBUTARY_MPI_ENTRY int MPI_Ireduce(const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root,
                                    MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(
      mpi::Collective::reduce, comm, mpi::bytes_of(count, type), request,
      [&](const mpi::Communicator& on) { return mpi::reduce_call(send, recv, count, type, op, root, on); },
      [&] { return PMPI_Ireduce(send, recv, count, type, op, root, comm, request); });
}

TRIBUTARY_MPI_ENTRY int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                                   MPI_Request* request) {
  return mpi::nonblocking(
      mpi::Collective::broadcast, comm, mpi::bytes_of(count, type), request,
      [&](const mpi::Communicator& on) { return mpi::broadcast_call(buffer, count, type, root, on); },
      [&] { return PMPI_Ibcast(buffer, count, type, root, comm, request); });
}

TRIBUTARY_MPI_ENTRY int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(
      mpi::Collective::barrier, comm, 0, request, [](const mpi::Communicator&) { return mpi::barrier_call(); },
      [&] { return PMPI_Ibarrier(comm, request); });
}
