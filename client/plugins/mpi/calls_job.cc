// MPI_Init and MPI_Finalize for C.
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/job.h"

namespace mpi = tributary::mpi;

TRIBUTARY_MPI_ENTRY int MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) mpi::begin_job();
  return code;
}

TRIBUTARY_MPI_ENTRY int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) mpi::begin_job();
  return code;
}

TRIBUTARY_MPI_ENTRY int MPI_Finalize() {
  mpi::end_job();
  return PMPI_Finalize();
}
