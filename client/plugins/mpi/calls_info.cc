// MPI's calls for C that give a communicator info keys, or tell them.
#include "client/plugins/mpi/entry.h"
#include "client/plugins/mpi/numerics.h"

namespace mpi = tributary::mpi;

TRIBUTARY_MPI_ENTRY int MPI_Comm_set_info(MPI_Comm comm, MPI_Info info) {
  const int code = PMPI_Comm_set_info(comm, info);
  if (code == MPI_SUCCESS) mpi::take_numerics(comm, info);
  return code;
}

TRIBUTARY_MPI_ENTRY int MPI_Comm_get_info(MPI_Comm comm, MPI_Info* info) {
  const int code = PMPI_Comm_get_info(comm, info);
  if (code == MPI_SUCCESS) mpi::show_numerics(comm, *info);
  return code;
}

TRIBUTARY_MPI_ENTRY int MPI_Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  const int code = PMPI_Comm_dup_with_info(comm, info, made);
  if (code == MPI_SUCCESS) mpi::take_numerics(*made, info);
  return code;
}
