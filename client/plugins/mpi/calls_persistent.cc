// MPI's persistent collectives for C, and the calls that start and free requests.
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/persistent.h"
#ifdef OPEN_MPI
#include <mpi-ext.h>  // Open MPI 4 has MPI-4's persistent collectives under names of its own
#endif

namespace mpi = tributary::mpi;

#ifdef OPEN_MPI
#define INIT(name) MPIX_##name##_init
#define PASS_INIT(name) PMPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#define PASS_INIT(name) PMPI_##name##_init
#endif
#define COUNT int
#define DISTANCE int
#include "client/plugins/mpi/entries_persistent.h"

TRIBUTARY_MPI_ENTRY int INIT(Barrier)(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return mpi::persistent(mpi::barrier(comm), request, [&] { return PASS_INIT(Barrier)(comm, info, request); });
}

TRIBUTARY_MPI_ENTRY int MPI_Start(MPI_Request* request) {
  if (const auto code = mpi::start_persistent(*request)) return *code;
  return PMPI_Start(request);
}

TRIBUTARY_MPI_ENTRY int MPI_Startall(int count, MPI_Request requests[]) {
  if (!mpi::any_persistent()) return PMPI_Startall(count, requests);
  return mpi::start_each(count, requests, &MPI_Start);
}

TRIBUTARY_MPI_ENTRY int MPI_Request_free(MPI_Request* request) {
  mpi::forget_persistent(*request);
  return PMPI_Request_free(request);
}
