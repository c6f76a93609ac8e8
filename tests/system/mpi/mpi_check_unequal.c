/* MPI_Reduce_scatter and MPI_Allgatherv with counts that differ. */
#include <string.h>

#include "mpi_check.h"

enum { kUnlike, kOneEmpty, kOneHasMost, kKinds };

/* Returns the elements of a rank's part. */
static int part_of(int kind, int of) {
  const int part = kCount / ranks;
  if (kind == kUnlike) return part + of;
  if (kind == kOneEmpty) return of == 1 ? 0 : part;
  return of == 0 ? kCount - 7 * ranks : 7;
}

struct Pair {
  int value, index;
};

struct Sums {
  double *in, *out;
  struct Pair *pairs, *best;
  int *counts, first, all;
};

static void fill(const struct Sums* sums) {
  for (int i = 0; i < sums->all; ++i) {
    sums->in[i] = element(rank, i);
    sums->pairs[i] = (struct Pair){(int)element(rank, i) % 7, rank};
  }
}

static struct Sums sums_for(int kind) {
  struct Sums sums = {.counts = memory(sizeof(int) * (size_t)ranks), .first = 0, .all = 0};
  for (int of = 0; of < ranks; ++of) {
    sums.counts[of] = part_of(kind, of);
    if (of < rank) sums.first += sums.counts[of];
    sums.all += sums.counts[of];
  }
  sums.in = memory(sizeof *sums.in * (size_t)sums.all);
  sums.out = memory(sizeof *sums.out * (size_t)sums.all);
  sums.pairs = memory(sizeof *sums.pairs * (size_t)sums.all);
  sums.best = memory(sizeof *sums.best * (size_t)sums.all);
  fill(&sums);
  return sums;
}

static void check_own_sums(const double* result, const struct Sums* sums) {
  for (int i = 0; i < sums->counts[rank]; ++i) EXPECT(result[i] == sum(ranks, sums->first + i));
}

static void free_sums(struct Sums* sums) {
  free(sums->in);
  free(sums->out);
  free(sums->pairs);
  free(sums->best);
  free(sums->counts);
}

static void reduce_scatters(int kind) {
  struct Sums sums = sums_for(kind);
  const int own = sums.counts[rank];
  MPI_Reduce_scatter(sums.in, sums.out, sums.counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  check_own_sums(sums.out, &sums);
  for (int i = own; i < sums.all; ++i) EXPECT(sums.out[i] == 0); /* nothing behind the part is written */
  MPI_Reduce_scatter(MPI_IN_PLACE, sums.in, sums.counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  check_own_sums(sums.in, &sums);
  MPI_Reduce_scatter(sums.pairs, sums.best, sums.counts, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
  struct Pair* const expected = memory(sizeof *expected * (size_t)sums.all);
  PMPI_Allreduce(sums.pairs, expected, sums.all, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD);
  EXPECT(memcmp(sums.best, expected + sums.first, sizeof *expected * (size_t)own) == 0);
  free(expected);
  free_sums(&sums);
}

struct Gathered {
  int *own, *all, *counts, *places;
  MPI_Datatype type;
  int unit, apart; /* elements of `type` in an int, and ints from one element to the next */
};

/* Rank 0 wants the parts in another order and with gaps, and rank 2 counts in bytes. */
static struct Gathered gathered_of(int kind) {
  struct Gathered to = {.type = MPI_INT, .unit = 1, .apart = 1};
  const size_t bytes = sizeof(int) * (size_t)ranks;
  to.counts = memory(bytes);
  to.places = memory(bytes);
  int all = 0;
  if (rank == 2) to.type = MPI_BYTE;
  if (rank == 2) to.unit = (int)sizeof(int);
  if (rank == 0) {
    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &to.type);
    MPI_Type_commit(&to.type);
    to.apart = 2;
  }
  for (int turn = 0; turn < ranks; ++turn) {
    const int of = rank == 0 ? ranks - 1 - turn : turn;
    to.counts[of] = part_of(kind, of) * to.unit;
    to.places[of] = all * to.unit;
    all += part_of(kind, of);
  }
  to.all = memory(sizeof *to.all * (size_t)(2 * all));
  to.own = memory(sizeof *to.own * (size_t)kCount);
  for (int i = 0; i < part_of(kind, rank); ++i) to.own[i] = (int)element(rank, i);
  return to;
}

static void check_gathered(const struct Gathered* to, int kind) {
  for (int of = 0; of < ranks; ++of) {
    const int* const part = to->all + to->places[of] / to->unit * to->apart;
    for (int i = 0; i < part_of(kind, of); ++i) EXPECT(part[i * to->apart] == (int)element(of, i));
    for (int i = 0; to->apart == 2 && i < part_of(kind, of); ++i) EXPECT(part[2 * i + 1] == 0);
  }
}

static void free_gathered(struct Gathered* to) {
  if (rank == 0) MPI_Type_free(&to->type);
  free(to->own);
  free(to->all);
  free(to->counts);
  free(to->places);
}

static void all_gathers(int kind) {
  for (int in_place = 0; in_place < 2; ++in_place) {
    struct Gathered to = gathered_of(kind);
    int* const own = to.all + to.places[rank] / to.unit * to.apart;
    for (int i = 0; in_place && i < part_of(kind, rank); ++i) own[i * to.apart] = to.own[i];
    MPI_Allgatherv(in_place ? MPI_IN_PLACE : to.own, part_of(kind, rank), MPI_INT, to.all, to.counts, to.places,
                   to.type, MPI_COMM_WORLD);
    check_gathered(&to, kind);
    free_gathered(&to);
  }
}

static void nonblocking_and_persistent(int kind) {
  struct Sums sums = sums_for(kind);
  struct Gathered to = gathered_of(kind);
  MPI_Request requests[2];
  MPI_Status statuses[2];
  MPI_Ireduce_scatter(sums.in, sums.out, sums.counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
  MPI_Iallgatherv(to.own, part_of(kind, rank), MPI_INT, to.all, to.counts, to.places, to.type, MPI_COMM_WORLD,
                  &requests[1]);
  MPI_Waitall(2, requests, statuses);
  check_own_sums(sums.out, &sums);
  check_gathered(&to, kind);
  INIT(Reduce_scatter)
  (MPI_IN_PLACE, sums.in, sums.counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  INIT(Allgatherv)
  (to.own, part_of(kind, rank), MPI_INT, to.all, to.counts, to.places, to.type, MPI_COMM_WORLD, MPI_INFO_NULL,
   &requests[1]);
  for (int turn = 0; turn < 2; ++turn) {
    memset(to.all, 0, sizeof(int) * kCount);
    fill(&sums);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    check_own_sums(sums.in, &sums);
    check_gathered(&to, kind);
  }
  for (int call = 0; call < 2; ++call) MPI_Request_free(&requests[call]);
  free_gathered(&to);
  free_sums(&sums);
}

void unequal_counts(void) {
  for (int kind = 0; kind < kKinds; ++kind) {
    reduce_scatters(kind);
    all_gathers(kind);
  }
  nonblocking_and_persistent(kUnlike);
}
