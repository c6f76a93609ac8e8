#include "client/plugins/mpi/blocking.h"

#include <algorithm>
#include <span>

#include "client/plugins/mpi/contiguous.h"

namespace tributary::mpi {

std::size_t bytes_of(int count, MPI_Datatype type) {
  return count <= 0 ? 0 : static_cast<std::size_t>(count) * Contiguous::bytes_of(type);
}

int equal_count(const int* recvcounts, MPI_Comm comm) {
  int ranks = 0;
  if (recvcounts == nullptr || comm == MPI_COMM_NULL || PMPI_Comm_size(comm, &ranks) != MPI_SUCCESS) return -1;
  const std::span counts(recvcounts, static_cast<std::size_t>(ranks));
  return std::ranges::all_of(counts, [&](int count) { return count == counts[0]; }) ? counts[0] : -1;
}

}  // namespace tributary::mpi
