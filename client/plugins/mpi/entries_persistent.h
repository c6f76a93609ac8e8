// The persistent collectives for C, in the manner of entries.h: INIT(name) is the function that programs call, and
// PASS_INIT(name) the same function of MPI. This file has no include guard.

TRIBUTARY_MPI_ENTRY int INIT(Allreduce)(const void* send, void* recv, COUNT count, MPI_Datatype type, MPI_Op op,
                                        MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::persistent(mpi::all_reduce(send, recv, count, type, op, comm), request,
                         [&] { return PASS_INIT(Allreduce)(send, recv, count, type, op, comm, info, request); });
}

TRIBUTARY_MPI_ENTRY int INIT(Reduce)(const void* send, void* recv, COUNT count, MPI_Datatype type, MPI_Op op, int root,
                                     MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::persistent(mpi::reduce(send, recv, count, type, op, root, comm), request,
                         [&] { return PASS_INIT(Reduce)(send, recv, count, type, op, root, comm, info, request); });
}

TRIBUTARY_MPI_ENTRY int INIT(Bcast)(void* buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm,
                                    MPI_Info info, MPI_Request* request) {
  return mpi::persistent(mpi::broadcast(buffer, count, type, root, comm), request,
                         [&] { return PASS_INIT(Bcast)(buffer, count, type, root, comm, info, request); });
}

TRIBUTARY_MPI_ENTRY int INIT(Reduce_scatter)(const void* send, void* recv, const COUNT counts[], MPI_Datatype type,
                                             MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::persistent(mpi::reduce_scatter(send, recv, counts, type, op, comm), request,
                         [&] { return PASS_INIT(Reduce_scatter)(send, recv, counts, type, op, comm, info, request); });
}

TRIBUTARY_MPI_ENTRY int INIT(Reduce_scatter_block)(const void* send, void* recv, COUNT count, MPI_Datatype type,
                                                   MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::persistent(mpi::reduce_scatter_block(send, recv, count, type, op, comm), request, [&] {
    return PASS_INIT(Reduce_scatter_block)(send, recv, count, type, op, comm, info, request);
  });
}

TRIBUTARY_MPI_ENTRY int INIT(Allgather)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                        COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                        MPI_Request* request) {
  return mpi::persistent(mpi::all_gather({send, sendcount, sendtype}, {recv, recvcount, recvtype}, comm), request, [&] {
    return PASS_INIT(Allgather)(send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request);
  });
}

TRIBUTARY_MPI_ENTRY int INIT(Allgatherv)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                         const COUNT counts[], const DISTANCE places[], MPI_Datatype recvtype,
                                         MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::persistent(
      mpi::all_gather_v({send, sendcount, sendtype}, recv, counts, places, recvtype, comm), request, [&] {
        return PASS_INIT(Allgatherv)(send, sendcount, sendtype, recv, counts, places, recvtype, comm, info, request);
      });
}

TRIBUTARY_MPI_ENTRY int INIT(Gather)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                     COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                                     MPI_Request* request) {
  return mpi::persistent(
      mpi::gather({send, sendcount, sendtype}, {recv, recvcount, recvtype}, root, comm), request, [&] {
        return PASS_INIT(Gather)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request);
      });
}

TRIBUTARY_MPI_ENTRY int INIT(Scatter)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                      COUNT recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info,
                                      MPI_Request* request) {
  return mpi::persistent(
      mpi::scatter({send, sendcount, sendtype}, {recv, recvcount, recvtype}, root, comm), request, [&] {
        return PASS_INIT(Scatter)(send, sendcount, sendtype, recv, recvcount, recvtype, root, comm, info, request);
      });
}

TRIBUTARY_MPI_ENTRY int INIT(Alltoall)(const void* send, COUNT sendcount, MPI_Datatype sendtype, void* recv,
                                       COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                                       MPI_Request* request) {
  return mpi::persistent(mpi::all_to_all({send, sendcount, sendtype}, {recv, recvcount, recvtype}, comm), request, [&] {
    return PASS_INIT(Alltoall)(send, sendcount, sendtype, recv, recvcount, recvtype, comm, info, request);
  });
}
