// MPI's collectives for C. MPICH's Fortran calls reach these functions, too.
#include "client/plugins/mpi/blocking.h"
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/exchange.h"
#include "client/plugins/mpi/nonblocking.h"

namespace mpi = tributary::mpi;

#define CALL(name) MPI_##name
#define PASS(name) PMPI_##name
#define COUNT int
#define DISTANCE int
#include "client/plugins/mpi/entries.h"

TRIBUTARY_MPI_ENTRY int MPI_Barrier(MPI_Comm comm) {
  return mpi::blocking(mpi::barrier(comm), [&] { return PMPI_Barrier(comm); });
}

TRIBUTARY_MPI_ENTRY int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return mpi::nonblocking(mpi::barrier(comm), request, [&] { return PMPI_Ibarrier(comm, request); });
}
