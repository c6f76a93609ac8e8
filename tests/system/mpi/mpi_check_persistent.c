/* Persistent collectives, mixed with MPI's own persistent and plain messages. */
#include <string.h>

#include "mpi_check.h"

enum { kSums = 3, kOwn = 5, kRequests = kOwn + 3 };

static double *in[kSums], *out[kSums], *wide, *gathered;
static int sent, got, plain;

/* Makes three sums, a broadcast, an allgather, and a message to the next rank. */
static void make_all(MPI_Comm comm, MPI_Request* requests) {
  for (int call = 0; call < kSums; ++call) {
    INIT(Allreduce)(in[call], out[call], kCount, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[call]);
  }
  INIT(Bcast)(wide, kCount, MPI_DOUBLE, 1, comm, MPI_INFO_NULL, &requests[3]);
  INIT(Allgather)(in[0], kCount / ranks, MPI_DOUBLE, gathered, kCount / ranks, MPI_DOUBLE, comm, MPI_INFO_NULL,
                  &requests[4]);
  MPI_Send_init(&sent, 1, MPI_INT, (rank + 1) % ranks, 5, comm, &requests[kOwn]);
  MPI_Recv_init(&got, 1, MPI_INT, (rank + ranks - 1) % ranks, 5, comm, &requests[kOwn + 1]);
  requests[kOwn + 2] = MPI_REQUEST_NULL;
}

static void fill_all(int round) {
  sent = 100 * round + rank;
  got = -1;
  for (int i = 0; i < kCount; ++i) {
    for (int call = 0; call < kSums; ++call) in[call][i] = element(rank, i + call + round);
    wide[i] = element(rank, i + round);
  }
}

static void check_all(int round) {
  EXPECT(got == 100 * round + (rank + ranks - 1) % ranks && plain == round);
  for (int i = 0; i < kCount; ++i) {
    for (int call = 0; call < kSums; ++call) EXPECT(out[call][i] == sum(ranks, i + call + round));
    EXPECT(wide[i] == element(1, i + round));
  }
  const int part = kCount / ranks;
  for (int i = 0; i < part * ranks; ++i) EXPECT(gathered[i] == element(i / part, i % part + round));
}

/* Each rank starts its requests in an order of its own. */
static void start_all(int round, MPI_Comm comm, MPI_Request* requests) {
  if (round % 2 == 0) MPI_Startall(kOwn + 2, requests);
  for (int at = 0; round % 2 == 1 && at < kOwn + 2; ++at) MPI_Start(&requests[rank % 2 == 0 ? at : kOwn + 1 - at]);
  plain = rank == 0 ? round : -1;
  if (rank == 0) {
    for (int to = 1; to < ranks; ++to) MPI_Send(&plain, 1, MPI_INT, to, 6, comm);
  } else {
    MPI_Irecv(&plain, 1, MPI_INT, 0, 6, comm, &requests[kOwn + 2]);
  }
}

static void wait_for_all(int round, MPI_Request* requests) {
  MPI_Status statuses[kRequests];
  int index = 0, flag = 0, ended = 0, indices[kRequests], left = kOwn + 2 + (rank != 0);
  switch (round % 7) {
    case 0:
      MPI_Waitall(kRequests, requests, statuses);
      break;
    case 1:
      while (left-- > 0) {
        MPI_Waitany(kRequests, requests, &index, statuses);
        EXPECT(index >= 0 && index < kRequests);
      }
      MPI_Waitany(kRequests, requests, &index, statuses);
      EXPECT(index == MPI_UNDEFINED); /* no request is active */
      break;
    case 2:
      for (; left > 0; left -= ended) MPI_Waitsome(kRequests, requests, &ended, indices, statuses);
      break;
    case 3:
      for (int i = kRequests - 1; i >= 0; --i) MPI_Wait(&requests[i], statuses);
      break;
    case 4:
      do MPI_Testall(kRequests, requests, &flag, statuses);
      while (!flag);
      break;
    case 5:
      for (; left > 0; left -= flag) MPI_Testany(kRequests, requests, &index, &flag, statuses);
      break;
    default:
      do MPI_Request_get_status(requests[0], &flag, statuses);
      while (!flag);
      for (left = 0; left < kRequests; left += flag) MPI_Test(&requests[left], &flag, statuses);
  }
}

/* A program may free a communicator before it waits for a collective. */
static void free_before_the_wait(void) {
  MPI_Comm copy;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  for (int i = 0; i < kCount; ++i) in[0][i] = in[1][i] = element(rank, i);
  MPI_Allreduce(MPI_IN_PLACE, in[1], kCount, MPI_DOUBLE, MPI_SUM, copy);
  MPI_Iallreduce(in[0], out[0], kCount, MPI_DOUBLE, MPI_SUM, copy, &request);
  MPI_Comm_free(&copy);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < kCount; ++i) EXPECT(out[0][i] == sum(ranks, i));
}

void persistent(void) {
  MPI_Request requests[kRequests];
  for (int call = 0; call < kSums; ++call) {
    in[call] = memory(sizeof(double) * kCount);
    out[call] = memory(sizeof(double) * kCount);
  }
  wide = memory(sizeof *wide * kCount);
  gathered = memory(sizeof *gathered * kCount);
  for (int again = 0; again < 3; ++again) { /* the second time, freed communicators serve again */
    make_all(MPI_COMM_WORLD, requests);
    for (int round = 0; round < 14; ++round) {
      fill_all(round);
      start_all(round, MPI_COMM_WORLD, requests);
      wait_for_all(round, requests);
      check_all(round);
      for (int i = 0; i < kOwn + 2; ++i) EXPECT(requests[i] != MPI_REQUEST_NULL);
    }
    for (int at = 0; at < kOwn + 2; ++at) MPI_Request_free(&requests[rank % 2 == 0 ? at : kOwn + 1 - at]);
    for (int i = 0; i < kRequests; ++i) EXPECT(requests[i] == MPI_REQUEST_NULL);
  }
  free_before_the_wait();
  for (int call = 0; call < kSums; ++call) {
    free(in[call]);
    free(out[call]);
  }
  free(wide);
  free(gathered);
}
