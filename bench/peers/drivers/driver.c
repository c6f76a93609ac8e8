#define _GNU_SOURCE
#include "driver.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The values repeat with a prime period, so that all chunks of an algorithm differ. */
enum { kPeriod = 251, kPeriodsAtOnce = 16 };

struct pattern {
  size_t element_bytes;
  unsigned char bytes[kPeriod * kPeriodsAtOnce * sizeof(float)];
};

/* Returns a small whole number times a power of two that depends only on the element. So all sums are exact, and blocks
of elements span as many bits as normally distributed values. gloo_driver.py uses the same float32. */
static float input_of(enum element element, int rank, size_t i) {
  const size_t mixed = i * 7 + (size_t)rank * 13;
  if (element != kFloat32) return ldexpf((float)(1 + mixed % 7), -(int)(i % 17));
  return ldexpf((float)(1 + mixed % 61), -(int)(i % 29));
}

__extension__ typedef _Float16 Half;

/* Writes a value that the type has without rounding. */
static void put(struct pattern* pattern, enum element element, size_t i, float value) {
  pattern->element_bytes = element == kFloat32 ? sizeof value : sizeof(uint16_t);
  unsigned char* const at = pattern->bytes + i * pattern->element_bytes;
  if (element == kFloat32) {
    memcpy(at, &value, sizeof value);
  } else if (element == kFloat16) {
    const Half half = (Half)value;
    memcpy(at, &half, sizeof half);
  } else {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint16_t upper = (uint16_t)(bits >> 16);
    memcpy(at, &upper, sizeof upper);
  }
}

static void make_input(struct pattern* pattern, enum element element, int rank) {
  for (size_t i = 0; i < kPeriod * kPeriodsAtOnce; ++i) put(pattern, element, i, input_of(element, rank, i % kPeriod));
}

/* Computes the value after `batch` allreduces in place: the first makes the sum, and each later allreduce multiplies it
by the number of ranks. */
static void make_expected(struct pattern* pattern, enum element element, int ranks, int batch) {
  const float factor = powf((float)ranks, (float)(batch - 1));
  for (size_t i = 0; i < kPeriod * kPeriodsAtOnce; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += input_of(element, rank, i % kPeriod);
    put(pattern, element, i, sum * factor);
  }
}

static void fill(unsigned char* values, size_t count, const struct pattern* pattern) {
  const size_t step = kPeriod * kPeriodsAtOnce, element = pattern->element_bytes;
  for (size_t i = 0; i < count; i += step)
    memcpy(values + i * element, pattern->bytes, (count - i < step ? count - i : step) * element);
}

/* Returns the index of the first wrong element, or count. Compares bit by bit, because all of these sums are exact. */
static size_t first_wrong(const unsigned char* values, size_t count, const struct pattern* expected) {
  const size_t step = kPeriod * kPeriodsAtOnce, element = expected->element_bytes;
  for (size_t i = 0; i < count; i += step) {
    const size_t some = count - i < step ? count - i : step;
    if (memcmp(values + i * element, expected->bytes, some * element) == 0) continue;
    for (size_t j = 0; j < some; ++j)
      if (memcmp(values + (i + j) * element, expected->bytes + j * element, element) != 0) return i + j;
  }
  return count;
}

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static FILE* connect_to_bench(int rank, const char* path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const char* control = getenv("PEERS_CONTROL");
  if (control == NULL || strlen(control) >= sizeof address.sun_path) {
    fprintf(stderr, "PEERS_CONTROL does not name a socket: start this program with bench/peers/run\n");
    return NULL;
  }
  strcpy(address.sun_path, control);
  const int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (end < 0 || connect(end, (const struct sockaddr*)&address, sizeof address) != 0) {
    perror(control);
    return NULL;
  }
  dprintf(end, "hello %d %d %s\n", rank, (int)getpid(), path);
  return fdopen(end, "r"); /* only for reading; writes use the descriptor: a FILE cannot do both on a socket */
}

struct outcome {
  double cpu_seconds;
  double* seconds; /* one per sample */
  size_t wrong_at; /* an element, or count */
  int failed;
};

static int all_reduce(const struct contestant* self, void* values, size_t count) {
  if (self->all_reduce_elements != NULL) return self->all_reduce_elements(self->context, values, count);
  return self->all_reduce(self->context, values, count);
}

static void take_samples(const struct contestant* self, void* values, size_t count, int samples, int batch,
                         struct outcome* outcome) {
  struct pattern input, expected;
  make_input(&input, self->element, self->rank);
  make_expected(&expected, self->element, self->ranks, batch);
  outcome->wrong_at = count;
  for (int sample = 0; sample < samples && !outcome->failed; ++sample) {
    fill(values, count, &input);
    /* This allreduce is not timed. It brings the ranks together again, because filling and checking
       take them different times. */
    float together = 1;
    outcome->failed = self->all_reduce(self->context, &together, 1);
    const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), begin = seconds_of(CLOCK_MONOTONIC);
    for (int i = 0; i < batch && !outcome->failed; ++i) outcome->failed = all_reduce(self, values, count);
    outcome->seconds[sample] = seconds_of(CLOCK_MONOTONIC) - begin;
    outcome->cpu_seconds += seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    /* This allreduce makes a rank wait before its check: other ranks may still need the processor. */
    if (!outcome->failed) outcome->failed = self->all_reduce(self->context, &together, 1);
    if (outcome->wrong_at == count) outcome->wrong_at = first_wrong(values, count, &expected);
    if (together != (float)self->ranks * (float)self->ranks) outcome->wrong_at = 0;
  }
}

static void report(int bench, const struct contestant* self, const struct outcome* outcome, size_t count, int samples) {
  if (outcome->failed) {
    dprintf(bench, "failed %s", self->why(self->context));
  } else if (outcome->wrong_at != count) {
    dprintf(bench, "wrong element %zu of %zu on rank %d", outcome->wrong_at, count, self->rank);
  } else {
    dprintf(bench, "result %.9f", outcome->cpu_seconds);
    for (int i = 0; i < samples; ++i) dprintf(bench, " %.0f", outcome->seconds[i] * 1e9);
  }
  dprintf(bench, "\n");
}

static void* allocate(const struct contestant* self, size_t bytes) {
  if (self->allocate != NULL) return self->allocate(self->context, bytes);
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

/* Returns 0, or another number when the rank cannot go on. */
static int measure(int bench, const struct contestant* self, size_t bytes, int samples, int batch) {
  const size_t count = bytes / (self->element == kFloat32 ? sizeof(float) : sizeof(uint16_t));
  void* values = allocate(self, bytes);
  double* seconds = calloc((size_t)samples, sizeof *seconds);
  if (values == NULL || seconds == NULL) {
    dprintf(bench, "failed no memory for %zu bytes\n", bytes);
    return 1;
  }
  struct outcome outcome = {.seconds = seconds};
  take_samples(self, values, count, samples, batch, &outcome);
  report(bench, self, &outcome, count, samples);
  if (self->release != NULL) {
    self->release(self->context, values);
  } else {
    munmap(values, bytes);
  }
  free(seconds);
  return outcome.failed;
}

int drive(const struct contestant* contestant) {
  FILE* bench = connect_to_bench(contestant->rank, contestant->path);
  if (bench == NULL) return 1;
  char line[256];
  int failed = 0;
  while (!failed && fgets(line, sizeof line, bench) != NULL) {
    size_t bytes;
    int samples, batch;
    if (sscanf(line, "measure %zu %d %d", &bytes, &samples, &batch) != 3) break;
    failed = measure(fileno(bench), contestant, bytes, samples, batch);
  }
  fclose(bench);
  return failed;
}

int refuse(int rank, const char* sentence) {
  FILE* bench = connect_to_bench(rank, "none");
  if (bench == NULL) return 1;
  dprintf(fileno(bench), "failed %s\n", sentence);
  fclose(bench);
  return 1;
}
