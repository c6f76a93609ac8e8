/* Compares collectives with MPI's own, round after round, until a file appears. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "mpi_check.h"

enum { kNumbers = 40009, kRoundsToTell = 10 };

static uint64_t state;

/* Numbers that follow from the rank and the round (xorshift). */
static uint64_t next_number(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

enum { kRanksMax = 64 };

struct Data {
  int64_t *in, *out, *own;
  double *values, *sums, *own_sums;
};

static void sums_of(const struct Data* data) {
  for (int i = 0; i < kNumbers; ++i) {
    data->in[i] = (int64_t)(next_number() >> 8);
    data->values[i] = (double)(next_number() >> 40) / 1024;
  }
  MPI_Request request;
  MPI_Iallreduce(data->in, data->out, kNumbers, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD, &request);
  MPI_Allreduce(data->values, data->sums, kNumbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Allreduce(data->values, data->own_sums, kNumbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  /* Each value has 24 bits, and 10 of them after the point: these sums are exact in any order. */
  EXPECT(memcmp(data->sums, data->own_sums, sizeof(double) * kNumbers) == 0);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  PMPI_Allreduce(data->in, data->own, kNumbers, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * kNumbers) == 0);
  MPI_Allreduce(data->in, data->out, kNumbers, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Allreduce(data->in, data->own, kNumbers, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * kNumbers) == 0);
}

/* The parts of all ranks but the last one have an element less than `part`. */
static void unequal_parts_of(const struct Data* data, int part) {
  int counts[kRanksMax], places[kRanksMax], all = 0;
  EXPECT(ranks <= kRanksMax);
  for (int of = 0; of < ranks; ++of) {
    places[of] = all;
    counts[of] = part - (of < ranks - 1);
    all += counts[of];
  }
  MPI_Reduce_scatter(data->in, data->out, counts, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Reduce_scatter(data->in, data->own, counts, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * (size_t)counts[rank]) == 0);
  MPI_Allgatherv(data->in, counts[rank], MPI_INT64_T, data->out, counts, places, MPI_INT64_T, MPI_COMM_WORLD);
  PMPI_Allgatherv(data->in, counts[rank], MPI_INT64_T, data->own, counts, places, MPI_INT64_T, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * (size_t)all) == 0);
}

static void movements_of(const struct Data* data, int round) {
  const int part = kNumbers / ranks, root = round % ranks;
  memcpy(data->out, data->in, sizeof(int64_t) * kNumbers);
  memcpy(data->own, data->in, sizeof(int64_t) * kNumbers);
  MPI_Bcast(data->out, kNumbers, MPI_INT64_T, root, MPI_COMM_WORLD);
  PMPI_Bcast(data->own, kNumbers, MPI_INT64_T, root, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * kNumbers) == 0);
  MPI_Reduce_scatter_block(data->in, data->out, part, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  PMPI_Reduce_scatter_block(data->in, data->own, part, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * (size_t)part) == 0);
  MPI_Allgather(data->in, part, MPI_INT64_T, data->out, part, MPI_INT64_T, MPI_COMM_WORLD);
  PMPI_Allgather(data->in, part, MPI_INT64_T, data->own, part, MPI_INT64_T, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * (size_t)(part * ranks)) == 0);
  unequal_parts_of(data, part);
  MPI_Alltoall(data->in, part, MPI_INT64_T, data->out, part, MPI_INT64_T, MPI_COMM_WORLD);
  PMPI_Alltoall(data->in, part, MPI_INT64_T, data->own, part, MPI_INT64_T, MPI_COMM_WORLD);
  EXPECT(memcmp(data->out, data->own, sizeof(int64_t) * (size_t)(part * ranks)) == 0);
}

void until_file(const char* name) {
  struct Data data;
  int64_t** const numbers[] = {&data.in, &data.out, &data.own};
  double** const values[] = {&data.values, &data.sums, &data.own_sums};
  for (int of = 0; of < 3; ++of) {
    *numbers[of] = memory(sizeof(int64_t) * kNumbers);
    *values[of] = memory(sizeof(double) * kNumbers);
  }
  state = 88172645463325252ULL + (uint64_t)(unsigned)rank;
  for (int round = 0, on = 1; on; ++round) {
    sums_of(&data);
    movements_of(&data, round);
    if (rank == 0 && round % kRoundsToTell == 0) {
      fprintf(stderr, "more rounds\n");
      fflush(stderr);
    }
    on = access(name, F_OK) != 0;
    PMPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  for (int of = 0; of < 3; ++of) {
    free(*numbers[of]);
    free(*values[of]);
  }
}
