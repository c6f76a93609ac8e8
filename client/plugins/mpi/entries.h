// The collectives for C whose counts are COUNT and whose displacements are DISTANCE: MPI has each of them with int, and
// MPICH 4 also with MPI_Count (MPI_Allreduce_c). calls_*.cc include this file once for each, with CALL(name) as the
// function that programs call, and PASS(name) as the same function of MPI. This file has no include guard.

TRIBUTARY_MPI_ENTRY int CALL(Allreduce)(const void* send, void* recv, COUNT count, MPI_Datatype type, MPI_Op op,
                                        MPI_Comm comm) {
  return mpi::blocking(mpi::all_reduce(send, recv, count, type, op, comm),
                       [&] { return PASS(Allreduce)(send, recv, count, type, op, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Reduce)(const void* send, void* recv, COUNT count, MPI_Datatype type, MPI_Op op, int root,
                                     MPI_Comm comm) {
  return mpi::blocking(mpi::reduce(send, recv, count, type, op, root, comm),
                       [&] { return PASS(Reduce)(send, recv, count, type, op, root, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Bcast)(void* buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm) {
  return mpi::blocking(mpi::broadcast(buffer, count, type, root, comm),
                       [&] { return PASS(Bcast)(buffer, count, type, root, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Reduce_scatter)(const void* send, void* recv, const COUNT counts[], MPI_Datatype type,
                                             MPI_Op op, MPI_Comm comm) {
  return mpi::blocking(mpi::reduce_scatter(send, recv, counts, type, op, comm),
                       [&] { return PASS(Reduce_scatter)(send, recv, counts, type, op, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Reduce_scatter_block)(const void* send, void* recv, COUNT count, MPI_Datatype type,
                                                   MPI_Op op, MPI_Comm comm) {
  return mpi::blocking(mpi::reduce_scatter_block(send, recv, count, type, op, comm),
                       [&] { return PASS(Reduce_scatter_block)(send, recv, count, type, op, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Allgather)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                        COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return mpi::blocking(mpi::all_gather({send, sendcount, sendtype}, {recv, recvcount, recvtype}, comm),
                       [&] { return PASS(Allgather)(send, sendcount, sendtype, recv, recvcount, recvtype, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Allgatherv)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                         const COUNT counts[], const DISTANCE places[], MPI_Datatype recvtype,
                                         MPI_Comm comm) {
  return mpi::blocking(mpi::all_gather_v({send, sendcount, sendtype}, recv, counts, places, recvtype, comm), [&] {
    return PASS(Allgatherv)(send, sendcount, sendtype, recv, counts, places, recvtype, comm);
  });
}

TRIBUTARY_MPI_ENTRY int CALL(Gather)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                     COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return mpi::blocking(mpi::gather({send, sendcount, sendtype}, {recv, recvcount, recvtype}, root, comm),
                       [&] { return PASS(Gather)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Scatter)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                      COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return mpi::blocking(mpi::scatter({send, sendcount, sendtype}, {recv, recvcount, recvtype}, root, comm),
                       [&] { return PASS(Scatter)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Alltoall)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                       COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return mpi::blocking(mpi::all_to_all({send, sendcount, sendtype}, {recv, recvcount, recvtype}, comm),
                       [&] { return PASS(Alltoall)(send, sendcount, sendtype, recv, recvcount, recvtype, comm); });
}

TRIBUTARY_MPI_ENTRY int CALL(Alltoallv)(const void* send, const COUNT sendcounts[], const DISTANCE from[],
                                        MPI_Datatype sendtype, void* recv, const COUNT recvcounts[],
                                        const DISTANCE to[], MPI_Datatype recvtype, MPI_Comm comm) {
  return mpi::all_to_all_v(mpi::Portions{send, sendcounts, from, sendtype},
                           mpi::Portions{recv, recvcounts, to, recvtype}, comm,
                           [&](const COUNT* sends, const COUNT* receives) {
                             return PASS(Alltoallv)(send, sends, from, sendtype, recv, receives, to, recvtype, comm);
                           });
}

TRIBUTARY_MPI_ENTRY int CALL(Iallreduce)(const void* send, void* recv, COUNT count, MPI_Datatype type, MPI_Op op,
                                         MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(mpi::all_reduce(send, recv, count, type, op, comm), request,
                          [&] { return PASS(Iallreduce)(send, recv, count, type, op, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Ireduce)(const void* send, void* recv, COUNT count, MPI_Datatype type, MPI_Op op, int root,
                                      MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(mpi::reduce(send, recv, count, type, op, root, comm), request,
                          [&] { return PASS(Ireduce)(send, recv, count, type, op, root, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Ibcast)(void* buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm,
                                     MPI_Request* request) {
  return mpi::nonblocking(mpi::broadcast(buffer, count, type, root, comm), request,
                          [&] { return PASS(Ibcast)(buffer, count, type, root, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Ireduce_scatter)(const void* send, void* recv, const COUNT counts[], MPI_Datatype type,
                                              MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(mpi::reduce_scatter(send, recv, counts, type, op, comm), request,
                          [&] { return PASS(Ireduce_scatter)(send, recv, counts, type, op, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Ireduce_scatter_block)(const void* send, void* recv, COUNT count, MPI_Datatype type,
                                                    MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(mpi::reduce_scatter_block(send, recv, count, type, op, comm), request,
                          [&] { return PASS(Ireduce_scatter_block)(send, recv, count, type, op, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Iallgather)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                         COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(
      mpi::all_gather({send, sendcount, sendtype}, {recv, recvcount, recvtype}, comm), request,
      [&] { return PASS(Iallgather)(send, sendcount, sendtype, recv, recvcount, recvtype, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Iallgatherv)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                          const COUNT counts[], const DISTANCE places[], MPI_Datatype recvtype,
                                          MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(
      mpi::all_gather_v({send, sendcount, sendtype}, recv, counts, places, recvtype, comm), request,
      [&] { return PASS(Iallgatherv)(send, sendcount, sendtype, recv, counts, places, recvtype, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Igather)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                      COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                                      MPI_Request* request) {
  return mpi::nonblocking(
      mpi::gather({send, sendcount, sendtype}, {recv, recvcount, recvtype}, root, comm), request,
      [&] { return PASS(Igather)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Iscatter)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                       COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                                       MPI_Request* request) {
  return mpi::nonblocking(
      mpi::scatter({send, sendcount, sendtype}, {recv, recvcount, recvtype}, root, comm), request,
      [&] { return PASS(Iscatter)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Ialltoall)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                        COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(
      mpi::all_to_all({send, sendcount, sendtype}, {recv, recvcount, recvtype}, comm), request,
      [&] { return PASS(Ialltoall)(send, sendcount, sendtype, recv, recvcount, recvtype, comm, request); });
}

TRIBUTARY_MPI_ENTRY int CALL(Ialltoallv)(const void* send, const COUNT sendcounts[], const DISTANCE from[],
                                         MPI_Datatype sendtype, void* recv, const COUNT recvcounts[],
                                         const DISTANCE to[], MPI_Datatype recvtype, MPI_Comm comm,
                                         MPI_Request* request) {
  return mpi::start_all_to_all_v(
      mpi::Portions{send, sendcounts, from, sendtype}, mpi::Portions{recv, recvcounts, to, recvtype}, comm, request,
      [&](const COUNT* sends, const COUNT* receives, MPI_Request* made) {
        return PASS(Ialltoallv)(send, sends, from, sendtype, recv, receives, to, recvtype, comm, made);
      });
}
