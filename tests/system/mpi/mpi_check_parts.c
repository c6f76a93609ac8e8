/* Collectives that give each rank a part of the data, and those with large counts. */
#include <string.h>

#include "mpi_check.h"

static int* filled(int first_of, int count) {
  int* const data = memory(sizeof *data * (size_t)count);
  for (int i = 0; i < count; ++i) data[i] = (int)element(first_of, i);
  return data;
}

/* Element `i` of the part that rank `from` gives to rank `to`. */
static int exchanged(int from, int to, int i) {
  return 1000000 * from + 10000 * to + i % 9973;
}

/* The root's ints lie two apart, the other ranks' ints one after the other. */
static void gathers(void) {
  MPI_Datatype strided;
  MPI_Type_vector(kCount, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  MPI_Datatype spaced;
  MPI_Type_create_resized(strided, 0, (MPI_Aint)sizeof(int) * 2 * kCount, &spaced);
  MPI_Type_commit(&spaced);
  int* own = filled(rank, kCount);
  int* wide = memory(sizeof *wide * 2 * kCount * (size_t)ranks);
  int* narrow = memory(sizeof *narrow * kCount * (size_t)ranks);
  for (int root = 0; root < ranks; ++root) {
    memset(wide, 0, sizeof *wide * 2 * kCount * (size_t)ranks);
    MPI_Gather(own, kCount, MPI_INT, wide, 1, spaced, root, MPI_COMM_WORLD);
    for (int i = 0; i < kCount * ranks; ++i) {
      EXPECT(wide[2 * i] == (rank == root ? (int)element(i / kCount, i % kCount) : 0) && wide[2 * i + 1] == 0);
    }
    memcpy(narrow + root * kCount, own, sizeof *own * kCount);
    MPI_Gather(rank == root ? MPI_IN_PLACE : own, kCount, MPI_INT, narrow, kCount, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < kCount * ranks; ++i) EXPECT(narrow[i] == (int)element(i / kCount, i % kCount));
    int* got = memory(sizeof *got * kCount);
    MPI_Scatter(wide, 1, spaced, got, kCount, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i) EXPECT(got[i] == own[i]);
    for (int i = 0; i < kCount; ++i) got[i] = 0;
    MPI_Scatter(narrow, kCount, MPI_INT, rank == root ? MPI_IN_PLACE : got, kCount, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; rank != root && i < kCount; ++i) EXPECT(got[i] == own[i]);
    for (int i = 0; rank == root && i < kCount * ranks; ++i) EXPECT(narrow[i] == (int)element(i / kCount, i % kCount));
    free(got);
  }
  MPI_Type_free(&spaced);
  MPI_Type_free(&strided);
  free(own);
  free(wide);
  free(narrow);
}

/* Returns the number of elements from one rank to another: some messages are empty, some short, some long. */
static int elements_between(int from, int to) {
  const int kinds[] = {0, 7, kCount, kCount - 5 * from - to};
  return kinds[(from + 2 * to) % 4];
}

/* The elements lie two apart where they are received, and one after the other where they are sent. With two calls at once,
 * the second one sends the elements plus one. */
static void uneven_exchange(int at_once) {
  MPI_Datatype spaced;
  MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &spaced);
  MPI_Type_commit(&spaced);
  int* out = memory(sizeof *out * kCount * (size_t)ranks);
  int* in = memory(sizeof *in * 2 * kCount * (size_t)ranks);
  int* out_too = memory(sizeof *out * kCount * (size_t)ranks);
  int* in_too = memory(sizeof *in * 2 * kCount * (size_t)ranks);
  int* sends = memory(sizeof *sends * (size_t)ranks);
  int* receives = memory(sizeof *receives * (size_t)ranks);
  int* places = memory(sizeof *places * (size_t)ranks);
  for (int of = 0; of < ranks; ++of) {
    sends[of] = elements_between(rank, of);
    receives[of] = elements_between(of, rank);
    places[of] = of * kCount;
    for (int i = 0; i < sends[of]; ++i) out[places[of] + i] = exchanged(rank, of, i);
    for (int i = 0; i < sends[of]; ++i) out_too[places[of] + i] = exchanged(rank, of, i) + 1;
  }
  if (at_once) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Ialltoallv(out, sends, places, MPI_INT, in, receives, places, spaced, MPI_COMM_WORLD, &requests[0]);
    MPI_Ialltoallv(out_too, sends, places, MPI_INT, in_too, receives, places, spaced, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&spaced);  // MPI allows this once the calls have started
    MPI_Waitall(2, requests, statuses);
  } else {
    MPI_Alltoallv(out, sends, places, MPI_INT, in, receives, places, spaced, MPI_COMM_WORLD);
    MPI_Type_free(&spaced);
  }
  for (int of = 0; of < ranks; ++of) {
    for (int i = 0; i < kCount; ++i) {
      EXPECT(in[2 * (places[of] + i)] == (i < receives[of] ? exchanged(of, rank, i) : 0));
      EXPECT(in_too[2 * (places[of] + i)] == (at_once && i < receives[of] ? exchanged(of, rank, i) + 1 : 0));
    }
  }
  free(out);
  free(in);
  free(out_too);
  free(in_too);
  free(sends);
  free(receives);
  free(places);
}

static void exchanges(void) {
  int* out = memory(sizeof *out * kCount * (size_t)ranks);
  int* in = memory(sizeof *in * kCount * (size_t)ranks);
  int* counts = memory(sizeof *counts * (size_t)ranks);
  int* places = memory(sizeof *places * (size_t)ranks);
  for (int i = 0; i < kCount * ranks; ++i) out[i] = exchanged(rank, i / kCount, i % kCount);
  MPI_Alltoall(out, kCount, MPI_INT, in, kCount, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < kCount * ranks; ++i) EXPECT(in[i] == exchanged(i / kCount, rank, i % kCount));
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, kCount, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < kCount * ranks; ++i) EXPECT(out[i] == in[i]);
  for (int of = 0; of < ranks; ++of) counts[of] = kCount;
  for (int of = 0; of < ranks; ++of) places[of] = of * kCount;
  MPI_Alltoallv(in, counts, places, MPI_INT, out, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < kCount * ranks; ++i) EXPECT(out[i] == exchanged(rank, i / kCount, i % kCount));
  uneven_exchange(0);
  free(out);
  free(in);
  free(counts);
  free(places);
}

/* Rank 0 wants the parts in another order than the other ranks. */
static void gathers_to_places(void) {
  int* own = filled(rank, kCount);
  int* all = memory(sizeof *all * kCount * (size_t)ranks);
  int* counts = memory(sizeof *counts * (size_t)ranks);
  int* places = memory(sizeof *places * (size_t)ranks);
  for (int of = 0; of < ranks; ++of) counts[of] = kCount;
  for (int of = 0; of < ranks; ++of) places[of] = (rank == 0 ? ranks - 1 - of : of) * kCount;
  for (int in_place = 0; in_place < 2; ++in_place) {
    memset(all, 0, sizeof *all * kCount * (size_t)ranks);
    if (in_place) memcpy(all + places[rank], own, sizeof *own * kCount);
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : own, kCount, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; ++of) {
      for (int i = 0; i < kCount; ++i) EXPECT(all[places[of] + i] == (int)element(of, i));
    }
  }
  free(own);
  free(all);
  free(counts);
  free(places);
}

void parts(void) {
  gathers();
  exchanges();
  gathers_to_places();
}

/* Each rank sends these many bytes to each other rank, call after call. */
static void exchanges_of(int bytes, int calls) {
  char* out = memory((size_t)(bytes * ranks));
  char* in = memory((size_t)(bytes * ranks));
  int* counts = memory(sizeof *counts * (size_t)ranks);
  int* places = memory(sizeof *places * (size_t)ranks);
  for (int of = 0; of < ranks; ++of) counts[of] = bytes;
  for (int of = 0; of < ranks; ++of) places[of] = of * bytes;
  for (int call = 0; call < calls; ++call) {
    for (int of = 0; of < ranks; ++of) memset(out + places[of], 16 * rank + of + call, (size_t)bytes);
    MPI_Alltoallv(out, counts, places, MPI_CHAR, in, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    for (int of = 0; of < ranks; ++of) EXPECT(in[places[of]] == (char)(16 * of + rank + call));
    for (int of = 0; of < ranks; ++of) EXPECT(in[places[of] + bytes - 1] == (char)(16 * of + rank + call));
  }
  free(out);
  free(in);
  free(counts);
  free(places);
}

void exchanges_of_two_sizes(void) {
  exchanges_of(8192, 32);
  exchanges_of(1 << 20, 32);
}

void nonblocking_parts(void) {
  const int part = kCount / ranks;
  int* own = filled(rank, kCount);
  int* all[6];
  int* counts = memory(sizeof *counts * (size_t)ranks);
  int* places = memory(sizeof *places * (size_t)ranks);
  MPI_Request requests[6];
  MPI_Status statuses[6];
  for (int call = 0; call < 6; ++call) all[call] = memory(sizeof(int) * kCount * (size_t)ranks);
  for (int of = 0; of < ranks; ++of) counts[of] = part;
  for (int of = 0; of < ranks; ++of) places[of] = (ranks - 1 - of) * part;
  MPI_Iallgather(own, part, MPI_INT, all[0], part, MPI_INT, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallgatherv(own, part, MPI_INT, all[1], counts, places, MPI_INT, MPI_COMM_WORLD, &requests[1]);
  MPI_Igather(own, part, MPI_INT, all[2], part, MPI_INT, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Iscatter(own, part, MPI_INT, all[3], part, MPI_INT, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Ialltoall(own, part, MPI_INT, all[4], part, MPI_INT, MPI_COMM_WORLD, &requests[4]);
  MPI_Ireduce_scatter_block(own, all[5], part, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[5]);
  MPI_Waitall(6, requests, statuses);
  for (int of = 0; of < ranks; ++of) {
    for (int i = 0; i < part; ++i) {
      EXPECT(all[0][of * part + i] == (int)element(of, i));
      EXPECT(all[1][places[of] + i] == (int)element(of, i));
      EXPECT(all[2][of * part + i] == (rank == 1 ? (int)element(of, i) : 0));
      EXPECT(all[4][of * part + i] == (int)element(of, rank * part + i));
    }
  }
  for (int i = 0; i < part; ++i) EXPECT(all[3][i] == (int)element(1, rank * part + i));
  for (int i = 0; i < part; ++i) EXPECT(all[5][i] == (int)sum(ranks, rank * part + i));
  MPI_Ireduce_scatter(own, all[5], counts, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  for (int i = 0; i < part; ++i) EXPECT(all[5][i] == (int)element(ranks - 1, rank * part + i));
  uneven_exchange(1);
  for (int call = 0; call < 6; ++call) free(all[call]);
  free(own);
  free(counts);
  free(places);
}

#if MPI_VERSION >= 4
void large_counts(void) {
  int* own = filled(rank, kCount);
  int* all = memory(sizeof *all * kCount * (size_t)ranks);
  MPI_Count* counts = memory(sizeof *counts * (size_t)ranks);
  MPI_Aint* places = memory(sizeof *places * (size_t)ranks);
  MPI_Request request;
  MPI_Allreduce_c(own, all, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) EXPECT(all[i] == (int)sum(ranks, i));
  MPI_Iallreduce_c(own, all, kCount, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCount; ++i) EXPECT(all[i] == (int)element(ranks - 1, i));
  for (int of = 0; of < ranks; ++of) counts[of] = kCount;
  for (int of = 0; of < ranks; ++of) places[of] = (MPI_Aint)(ranks - 1 - of) * kCount;
  MPI_Allgatherv_c(own, kCount, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
  for (int of = 0; of < ranks; ++of) {
    for (int i = 0; i < kCount; ++i) EXPECT(all[places[of] + i] == (int)element(of, i));
  }
  MPI_Bcast_c(own, kCount, MPI_INT, 1, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) EXPECT(own[i] == (int)element(1, i));
  free(own);
  free(all);
  free(counts);
  free(places);
}
#else
void large_counts(void) {}
#endif
