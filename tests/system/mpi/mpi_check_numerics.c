/* The info key that chooses the numerics of a communicator. */
#include <string.h>

#include "mpi_check.h"

/* Returns whether a sum on this communicator is exact: its large values cancel, and a rounded sum loses the small. */
static int sums_exactly(MPI_Comm comm) {
  static double values[kCount];
  const double own[4] = {1e30, 1, -1e30, 0x1p-40};
  for (int i = 0; i < kCount; ++i) values[i] = own[rank];
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 1; i < kCount; ++i) EXPECT(values[i] == values[0]);
  return values[0] == 1 + 0x1p-40;
}

static MPI_Info info_with(const char* value) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "tributary_numerics", value);
  return info;
}

static void set(MPI_Comm comm, const char* value) {
  MPI_Info info = info_with(value);
  EXPECT(MPI_Comm_set_info(comm, info) == MPI_SUCCESS);
  MPI_Info_free(&info);
}

static int tells(MPI_Comm comm, const char* value) {
  MPI_Info info;
  char text[MPI_MAX_INFO_VAL + 1];
  int found = 0;
  MPI_Comm_get_info(comm, &info);
  MPI_Info_get(info, "tributary_numerics", MPI_MAX_INFO_VAL, text, &found);
  MPI_Info_free(&info);
  return found && strcmp(text, value) == 0;
}

void numerics(void) {
  MPI_Info exact = info_with("exact");
  MPI_Comm own, heir;
  EXPECT(ranks == 4);
  EXPECT(!sums_exactly(MPI_COMM_WORLD));
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, exact, &own);
  EXPECT(sums_exactly(own));
  EXPECT(!sums_exactly(MPI_COMM_WORLD)); /* each communicator has numerics of its own */
  set(MPI_COMM_WORLD, "exact");          /* after its first calls */
  EXPECT(sums_exactly(MPI_COMM_WORLD));
  EXPECT(tells(MPI_COMM_WORLD, "exact"));
  MPI_Comm_dup(MPI_COMM_WORLD, &heir);
  EXPECT(sums_exactly(heir));
  set(own, "fast");
  EXPECT(!sums_exactly(own));
  EXPECT(tells(own, "fast"));
  set(heir, "rough");
  EXPECT(sums_exactly(heir));
  set(heir, rank == 2 ? "fast" : "exact");
  EXPECT(sums_exactly(heir));
  MPI_Comm_free(&own);
  MPI_Comm_free(&heir);
  MPI_Info_free(&exact);
}
