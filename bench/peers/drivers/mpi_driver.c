/* bench/peers/run builds this once with mpicc.openmpi and once with mpicc.mpich. */
#include <mpi.h>

#include "driver.h"

struct context {
  char why[MPI_MAX_ERROR_STRING];
};

static int all_reduce(void* context, float* values, size_t count) {
  struct context* self = context;
  const int error = MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (error == MPI_SUCCESS) return 0;
  int length = 0;
  MPI_Error_string(error, self->why, &length);
  return 1;
}

static const char* why(void* context) {
  return ((struct context*)context)->why;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  struct context context = {""};
  struct contestant self = {.path = "mpi", .all_reduce = all_reduce, .why = why, .context = &context};
  MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
  const int failed = drive(&self);
  if (failed) MPI_Abort(MPI_COMM_WORLD, failed);
  MPI_Finalize();
  return 0;
}
