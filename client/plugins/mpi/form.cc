#include "client/plugins/mpi/form.h"

#include "client/plugins/mpi/contiguous.h"

namespace tributary::mpi {

std::size_t bytes_of(Count count, MPI_Datatype type) {
  return count <= 0 ? 0 : static_cast<std::size_t>(count) * Contiguous::bytes_of(type);
}

std::size_t ranks_of(MPI_Comm comm) {
  int ranks = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_size(comm, &ranks);
  return static_cast<std::size_t>(ranks);
}

bool is_between_groups(MPI_Comm comm) {
  int between_groups = 0;
  if (comm != MPI_COMM_NULL) PMPI_Comm_test_inter(comm, &between_groups);
  return between_groups != 0;
}

bool is_root(int root, MPI_Comm comm) {
  int rank = -1;
  if (comm != MPI_COMM_NULL) PMPI_Comm_rank(comm, &rank);
  return rank == root;
}

}  // namespace tributary::mpi
