/* A program in MPI that knows nothing of Tributary. It compares every element of every result. The first argument says
 * what it does. */
#include "mpi_check.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

int rank, ranks;

void fail(const char* what, int line) {
  fprintf(stderr, "rank %d: wrong: %s, line %d\n", rank, what, line);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void* memory(size_t bytes) {
  void* const got = calloc(bytes == 0 ? 1 : bytes, 1);
  EXPECT(got != NULL);
  return got;
}

double element(int of, int i) {
  return of + 1 + (i % 1000);
}
double sum(int size, int i) {
  return size * (size + 1) / 2.0 + (double)size * (i % 1000);
}

static void all_reduces(MPI_Comm comm, int count) {
  int own, size;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &size);
  double* in = memory(sizeof *in * (size_t)count);
  double* out = memory(sizeof *out * (size_t)count);
  for (int i = 0; i < count; ++i) in[i] = element(own, i);
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) EXPECT(out[i] == sum(size, i));
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_MAX, comm);
  for (int i = 0; i < count; ++i) EXPECT(out[i] == element(size - 1, i));
  MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_MIN, comm);
  for (int i = 0; i < count; ++i) EXPECT(out[i] == element(0, i));
  MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_DOUBLE, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) EXPECT(in[i] == sum(size, i));
  free(in);
  free(out);
}

static void types(void) {
  int* in = memory(sizeof *in * kCount);
  int* out = memory(sizeof *out * kCount);
  for (int i = 0; i < kCount; ++i) in[i] = (int)element(rank, i);
  MPI_Allreduce(in, out, kCount, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) EXPECT(out[i] == (int)sum(ranks, i));
  for (int i = 0; i < kCount; ++i) in[i] = 1 << (rank + i % 3);
  MPI_Allreduce(in, out, kCount, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) EXPECT(out[i] == ((1 << ranks) - 1) << (i % 3));
  float* pairs = memory(sizeof *pairs * 2 * kCount);
  for (int i = 0; i < kCount; ++i) {
    pairs[2 * i] = (float)element(rank, i);
    pairs[2 * i + 1] = -(float)element(rank, i);
  }
  MPI_Allreduce(MPI_IN_PLACE, pairs, kCount, MPI_C_FLOAT_COMPLEX, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) EXPECT(pairs[2 * i] == (float)sum(ranks, i) && pairs[2 * i + 1] == -pairs[2 * i]);
  free(in);
  free(out);
  free(pairs);
}

static void reduces(void) {
  double* in = memory(sizeof *in * kCount);
  double* out = memory(sizeof *out * kCount);
  for (int root = 0; root < ranks; ++root) {
    for (int i = 0; i < kCount; ++i) in[i] = element(rank, i);
    MPI_Reduce(in, out, kCount, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < kCount; ++i) EXPECT(out[i] == sum(ranks, i));
    if (root != 0) continue; /* MPICH 4.0.2 crashes by itself in place at other roots */
    MPI_Reduce(rank == root ? MPI_IN_PLACE : in, rank == root ? in : out, kCount, MPI_DOUBLE, MPI_SUM, root,
               MPI_COMM_WORLD);
    for (int i = 0; rank == root && i < kCount; ++i) EXPECT(in[i] == sum(ranks, i));
  }
  const int part = kCount / ranks;
  double* parts = memory(sizeof *parts * (size_t)part);
  for (int i = 0; i < kCount; ++i) in[i] = element(rank, i);
  MPI_Reduce_scatter_block(in, parts, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < part; ++i) EXPECT(parts[i] == sum(ranks, rank * part + i));
  MPI_Reduce_scatter_block(MPI_IN_PLACE, in, part, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < part; ++i) EXPECT(in[i] == sum(ranks, rank * part + i));
  int* counts = memory(sizeof *counts * (size_t)ranks);
  for (int of = 0; of < ranks; ++of) counts[of] = part;
  for (int i = 0; i < kCount; ++i) in[i] = element(rank, i);
  MPI_Reduce_scatter(in, parts, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < part; ++i) EXPECT(parts[i] == sum(ranks, rank * part + i));
  free(in);
  free(out);
  free(parts);
  free(counts);
}

/* Ranks may name the same data by different types: here rank 0's ints lie two apart. */
static void movements(void) {
  MPI_Datatype strided;
  MPI_Type_vector(kCount, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  int* wide = memory(sizeof *wide * 2 * kCount);
  int* narrow = memory(sizeof *narrow * kCount);
  for (int root = 0; root < ranks; ++root) {
    memset(wide, 0, sizeof *wide * 2 * kCount);
    memset(narrow, 0, sizeof *narrow * kCount);
    for (int i = 0; rank == root && i < kCount; ++i) wide[2 * i] = narrow[i] = (int)element(root, i);
    if (rank == 0) MPI_Bcast(wide, 1, strided, root, MPI_COMM_WORLD);
    if (rank != 0) MPI_Bcast(narrow, kCount, MPI_INT, root, MPI_COMM_WORLD);
    for (int i = 0; i < kCount; ++i) EXPECT((rank == 0 ? wide[2 * i] : narrow[i]) == (int)element(root, i));
    for (int i = 0; i < kCount; ++i) EXPECT(wide[2 * i + 1] == 0);
  }
  int* all = memory(sizeof *all * (size_t)(kCount * ranks));
  for (int i = 0; i < kCount; ++i) wide[2 * i] = narrow[i] = (int)element(rank, i);
  if (rank == 0) MPI_Allgather(wide, 1, strided, all, kCount, MPI_INT, MPI_COMM_WORLD);
  if (rank != 0) MPI_Allgather(narrow, kCount, MPI_INT, all, kCount, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < kCount * ranks; ++i) EXPECT(all[i] == (int)element(i / kCount, i % kCount));
  for (int i = 0; i < kCount * ranks; ++i) all[i] = i / kCount == rank ? all[i] + 1 : 0;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, kCount, MPI_INT, MPI_COMM_WORLD);
  for (int i = 0; i < kCount * ranks; ++i) EXPECT(all[i] == (int)element(i / kCount, i % kCount) + 1);
  MPI_Type_free(&strided);
  free(wide);
  free(narrow);
  free(all);
}

static void twice(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void passed_on(void) {
  MPI_Op op;
  MPI_Op_create(twice, 1, &op);
  int* in = memory(sizeof *in * kCount);
  for (int i = 0; i < kCount; ++i) in[i] = (int)element(rank, i);
  MPI_Allreduce(MPI_IN_PLACE, in, kCount, MPI_INT, op, MPI_COMM_WORLD);
  for (int i = 0; i < kCount; ++i) EXPECT(in[i] == (int)sum(ranks, i));
  MPI_Op_free(&op);
  struct {
    double value;
    int at;
  } best = {element(rank, 0), rank}, got;
  MPI_Allreduce(&best, &got, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
  EXPECT(got.at == ranks - 1);
  all_reduces(MPI_COMM_SELF, kCount);
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &between);
  for (int i = 0; i < kCount; ++i) in[i] = (int)element(rank, i);
  int* out = memory(sizeof *out * kCount);
  MPI_Allreduce(in, out, kCount, MPI_INT, MPI_SUM, between); /* each half gets the sum of the other half */
  for (int i = 0; i < kCount; ++i) {
    int expected = 0;
    for (int of = 1 - rank % 2; of < ranks; of += 2) expected += (int)element(of, i);
    EXPECT(out[i] == expected);
  }
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  free(in);
  free(out);
}

static void communicators(void) {
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Comm half, copy, copy_of_half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    all_reduces(half, kCount);
    all_reduces(copy, kCount);
    MPI_Comm_dup(half, &copy_of_half);
    all_reduces(copy_of_half, kCount);
    MPI_Comm_free(&half);
    all_reduces(copy_of_half, kCount);
    MPI_Comm_free(&copy_of_half);
    if (turn > 0) MPI_Comm_free(&copy); /* MPI_Finalize ends the one that is left */
  }
}

/* A rank waits in MPI for a message, whose sender is in a collective already: the sender's MPI must go on there. */
static void message_under_way(void) {
  enum { kLarge = 4 << 20 };
  char* data = memory(kLarge);
  double* values = memory(sizeof *values * kCount);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* opens the connections */
  if (rank == 0) MPI_Isend(data, kLarge, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Recv(data, kLarge, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Allreduce(MPI_IN_PLACE, values, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(data);
  free(values);
}

static void nonblocking(void) {
  enum { kCalls = 6 };
  double* data[kCalls];
  MPI_Request requests[kCalls + 2];
  MPI_Status statuses[kCalls + 2];
  int token = rank, from_left = -1, index, flag, ended, indices[kCalls + 2];
  for (int way = 0; way < 6; ++way) {
    for (int call = 0; call < kCalls; ++call) {
      data[call] = memory(sizeof(double) * kCount);
      for (int i = 0; i < kCount; ++i) data[call][i] = element(rank, i + call);
      if (call % 3 == 0)
        MPI_Iallreduce(MPI_IN_PLACE, data[call], kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[call]);
      if (call % 3 == 1) MPI_Ibcast(data[call], kCount, MPI_DOUBLE, call % ranks, MPI_COMM_WORLD, &requests[call]);
      if (call % 3 == 2)
        MPI_Ireduce(rank == 1 ? MPI_IN_PLACE : data[call], data[call], kCount, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD,
                    &requests[call]);
    }
    MPI_Irecv(&from_left, 1, MPI_INT, (rank + ranks - 1) % ranks, way, MPI_COMM_WORLD, &requests[kCalls]);
    MPI_Isend(&token, 1, MPI_INT, (rank + 1) % ranks, way, MPI_COMM_WORLD, &requests[kCalls + 1]);
    int left = kCalls + 2;
    if (way == 0) MPI_Waitall(left, requests, statuses);
    if (way == 1)
      while (left-- > 0) MPI_Waitany(kCalls + 2, requests, &index, statuses);
    if (way == 2) {
      for (; left > 0; left -= ended) MPI_Waitsome(kCalls + 2, requests, &ended, indices, statuses);
    }
    if (way == 3)
      for (int i = 0; i < kCalls + 2; ++i) MPI_Wait(&requests[i], statuses);
    if (way == 4) do
        MPI_Testall(left, requests, &flag, statuses);
      while (!flag);
    if (way == 5) {
      for (; left > 0; left -= flag) MPI_Testany(kCalls + 2, requests, &index, &flag, statuses);
    }
    for (int i = 0; i < kCalls + 2; ++i) EXPECT(requests[i] == MPI_REQUEST_NULL);
    EXPECT(from_left == (rank + ranks - 1) % ranks);
    for (int call = 0; call < kCalls; ++call) {
      for (int i = 0; i < kCount; ++i) {
        if (call % 3 == 0) EXPECT(data[call][i] == sum(ranks, i + call));
        if (call % 3 == 1) EXPECT(data[call][i] == element(call % ranks, i + call));
        if (call % 3 == 2 && rank == 1) EXPECT(data[call][i] == sum(ranks, i + call));
      }
      free(data[call]);
    }
  }
  MPI_Request barrier;
  MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
  do MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE);
  while (!flag);
}

static void all_kinds(void) {
  all_reduces(MPI_COMM_WORLD, kCount);
  all_reduces(MPI_COMM_WORLD, 3);
  MPI_Barrier(MPI_COMM_WORLD);
  types();
  reduces();
  movements();
  passed_on();
  communicators();
  message_under_way();
  nonblocking();
}

static void for_seconds(double seconds) {
  const double begin = MPI_Wtime();
  for (int round = 0, on = 1; on; ++round) {
    all_reduces(MPI_COMM_WORLD, 500000);
    if (round == 0 && rank == 0) {
      fprintf(stderr, "first round\n");
      fflush(stderr);
    }
    on = MPI_Wtime() - begin < seconds;
    MPI_Bcast(&on, 1, MPI_INT, 0, MPI_COMM_WORLD); /* small: MPI's own */
  }
}

static void* reduce_on(void* comm) {
  for (int round = 0; round < 20; ++round) all_reduces(*(MPI_Comm*)comm, kCount);
  return NULL;
}

/* Several threads call at once, each on a communicator of its own. */
static void at_once(int provided) {
  MPI_Comm comms[3];
  pthread_t threads[3];
  EXPECT(provided == MPI_THREAD_MULTIPLE);
  for (int i = 0; i < 3; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  for (int i = 0; i < 3; ++i) EXPECT(pthread_create(&threads[i], NULL, reduce_on, &comms[i]) == 0);
  for (int i = 0; i < 3; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  for (int i = 0; i < 3; ++i) MPI_Comm_free(&comms[i]);
}

/* Rank 1 dies, or stays away; the other ranks must get an error of MPI with Tributary's sentence. */
static void lose_a_rank(int dies) {
  double* data = memory(sizeof *data * kCount);
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Allreduce(MPI_IN_PLACE, data, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 1 && dies) raise(SIGKILL);
  if (rank == 1) sleep(300);
  const int code = MPI_Allreduce(MPI_IN_PLACE, data, kCount, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(code != MPI_SUCCESS);
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "rank %d got: %s\n", rank, text);
  fflush(stderr);
}

int main(int argc, char** argv) {
  int provided;
  const char* const what = argc > 1 ? argv[1] : "all";
  const int threads = strcmp(what, "threads") == 0;
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (strcmp(what, "all") == 0) all_kinds();
  if (strcmp(what, "parts") == 0) {
    parts();
    nonblocking_parts();
  }
  if (strcmp(what, "exchanges") == 0) exchanges_of_two_sizes();
  if (strcmp(what, "types") == 0) types_and_operations();
  if (strcmp(what, "large counts") == 0) large_counts();
  if (strcmp(what, "unequal counts") == 0) unequal_counts();
  if (strcmp(what, "persistent") == 0) persistent();
  if (strcmp(what, "numerics") == 0) numerics();
  if (threads) at_once(provided);
  if (threads) under_load();
  if (strcmp(what, "message") == 0) message_under_way();
  if (strcmp(what, "seconds") == 0) for_seconds(atof(argv[2]));
  if (strcmp(what, "until") == 0) until_file(argv[2]);
  if (strcmp(what, "many") == 0)
    for (int call = 0; call < 50; ++call) all_reduces(MPI_COMM_WORLD, kCount);
  if (strcmp(what, "lose") == 0 || strcmp(what, "miss") == 0) lose_a_rank(what[0] == 'l');
  if (rank == 0) printf("all right on %d ranks\n", ranks);
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
