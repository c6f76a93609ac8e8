/* Several threads call collectives of all kinds at once, each on communicators of its own. */
#include <pthread.h>

#include "mpi_check.h"

enum { kThreads = 4, kRounds = 8, kElements = 5003 };

struct Load {
  MPI_Comm comm;
  int number;
  double *in, *out[4], *wide;
};

static void prepare(const struct Load* load, int round) {
  for (int i = 0; i < kElements; ++i) {
    load->in[i] = element(rank, i + round + load->number);
    load->wide[i] = load->in[i];
  }
}

static void check_sums(const struct Load* load, int size, int round, int results) {
  for (int of = 0; of < results; ++of) {
    for (int i = 0; i < kElements; ++i) EXPECT(load->out[of][i] == sum(size, i + round + load->number));
  }
}

/* Blocking, nonblocking and persistent collectives, and messages, in one round. */
static void round_of(const struct Load* load, MPI_Comm comm, MPI_Request* sums, int round) {
  int right = -1;
  MPI_Request requests[4];
  MPI_Status statuses[4];
  prepare(load, round);
  MPI_Allreduce(load->in, load->out[0], kElements, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Iallreduce(load->in, load->out[1], kElements, MPI_DOUBLE, MPI_SUM, comm, &requests[0]);
  MPI_Ibcast(load->wide, kElements, MPI_DOUBLE, round % ranks, comm, &requests[1]);
  MPI_Isend(&rank, 1, MPI_INT, (rank + ranks - 1) % ranks, round, comm, &requests[2]);
  MPI_Irecv(&right, 1, MPI_INT, (rank + 1) % ranks, round, comm, &requests[3]);
  MPI_Start(sums);
  if (round % 2 == 0) MPI_Waitall(4, requests, statuses);
  for (int of = 0, index = 0; round % 2 == 1 && of < 4; ++of) MPI_Waitany(4, requests, &index, statuses);
  MPI_Wait(sums, statuses);
  check_sums(load, ranks, round, 3);
  for (int i = 0; i < kElements; ++i) EXPECT(load->wide[i] == element(round % ranks, i + round + load->number));
  EXPECT(right == (rank + 1) % ranks);
}

static void* carry(void* of) {
  const struct Load* const load = of;
  for (int again = 0; again < 2; ++again) {
    MPI_Comm copy;
    MPI_Request sums;
    MPI_Comm_dup(load->comm, &copy);
    INIT(Allreduce)(load->in, load->out[2], kElements, MPI_DOUBLE, MPI_SUM, copy, MPI_INFO_NULL, &sums);
    for (int round = 0; round < kRounds; ++round) {
      round_of(load, copy, &sums, round);
      MPI_Allreduce(load->in, load->out[3], kElements, MPI_DOUBLE, MPI_SUM, load->comm);
      check_sums(load, ranks, round, 4);
    }
    MPI_Request_free(&sums);
    MPI_Comm_free(&copy);
  }
  return NULL;
}

void under_load(void) {
  struct Load loads[kThreads];
  pthread_t threads[kThreads];
  for (int of = 0; of < kThreads; ++of) {
    loads[of].number = of;
    MPI_Comm_dup(MPI_COMM_WORLD, &loads[of].comm);
    loads[of].in = memory(sizeof(double) * kElements);
    loads[of].wide = memory(sizeof(double) * kElements);
    for (int result = 0; result < 4; ++result) loads[of].out[result] = memory(sizeof(double) * kElements);
  }
  for (int of = 0; of < kThreads; ++of) EXPECT(pthread_create(&threads[of], NULL, &carry, &loads[of]) == 0);
  for (int of = 0; of < kThreads; ++of) EXPECT(pthread_join(threads[of], NULL) == 0);
  for (int of = 0; of < kThreads; ++of) {
    MPI_Comm_free(&loads[of].comm);
    free(loads[of].in);
    free(loads[of].wide);
    for (int result = 0; result < 4; ++result) free(loads[of].out[result]);
  }
}
