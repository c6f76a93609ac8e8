/* Uses the public C API. The variables TRIBUTARY_* choose path, manager and host, as for any program. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tributary/tributary.h>
#include <unistd.h>

#include "driver.h"

static int all_reduce(void* context, float* values, size_t count) {
  return tributary_all_reduce(values, values, count, TRIBUTARY_FLOAT32, TRIBUTARY_SUM, context, NULL) != TRIBUTARY_OK;
}

/* PEERS_TYPE names another type than float32. */
static tributary_dtype dtype = TRIBUTARY_FLOAT32;

static int all_reduce_elements(void* context, void* values, size_t count) {
  return tributary_all_reduce(values, values, count, dtype, TRIBUTARY_SUM, context, NULL) != TRIBUTARY_OK;
}

static const char* why(void* context) {
  return tributary_last_error(context);
}

/* With PEERS_REGISTERED it acts like a program that allocates its buffers for this library. */
static tributary_mem* registered;

static void* allocate(void* context, size_t bytes) {
  void* memory = NULL;
  if (tributary_mem_alloc(bytes, &memory) != TRIBUTARY_OK) return NULL;
  if (tributary_mem_register(context, memory, bytes, TRIBUTARY_MEM_HOST, &registered) == TRIBUTARY_OK) return memory;
  tributary_mem_free(memory);
  return NULL;
}

static void release(void* context, void* memory) {
  tributary_mem_deregister(context, registered);
  tributary_mem_free(memory);
}

/* Rank 0's unique id travels in a file. */
static int share_id(const char* file, int rank, tributary_unique_id* id) {
  char draft[4096];
  snprintf(draft, sizeof draft, "%s.new", file);
  if (rank == 0) {
    if (tributary_get_unique_id(id) != TRIBUTARY_OK) return 1;
    FILE* out = fopen(draft, "wb");
    return out == NULL || fwrite(id, sizeof *id, 1, out) != 1 || fclose(out) != 0 || rename(draft, file) != 0;
  }
  for (int tries = 0; tries < 3000; ++tries) {
    FILE* in = fopen(file, "rb");
    if (in != NULL) {
      const size_t got = fread(id, sizeof *id, 1, in);
      fclose(in);
      return got != 1;
    }
    usleep(10000);
  }
  return 1;
}

/* Returns "local", "fallback", or "in-network-LEVELS". */
static void name_path(const tributary_comm* comm, char* name, size_t size) {
  tributary_info info = {.struct_bytes = sizeof info};
  const int known = tributary_comm_info(comm, &info) == TRIBUTARY_OK;
  if (known && info.path == TRIBUTARY_PATH_IN_NETWORK) {
    snprintf(name, size, "in-network-%u", (unsigned)info.levels);
  } else {
    snprintf(name, size, "%s", known && info.path == TRIBUTARY_PATH_LOCAL ? "local" : "fallback");
  }
}

/* The tree forms while the ranks can already reduce; if they may use no other path, the first allreduce waits for it.
 */
static int settle(tributary_comm* comm) {
  float one = 1;
  return all_reduce(comm, &one, 1);
}

int main(int argc, char** argv) {
  const char *rank_text = getenv("RANK"), *ranks_text = getenv("WORLD_SIZE");
  if (argc != 2 || rank_text == NULL || ranks_text == NULL) {
    fprintf(stderr, "usage: RANK=0 WORLD_SIZE=2 %s ID_FILE\n", argv[0]);
    return 64;
  }
  const int rank = atoi(rank_text), ranks = atoi(ranks_text);
  tributary_unique_id id;
  tributary_comm* comm = NULL;
  char path[32];
  if (share_id(argv[1], rank, &id) != 0) return refuse(rank, "rank 0's unique id did not come");
  if (tributary_comm_init_rank(&comm, ranks, &id, rank) != TRIBUTARY_OK || settle(comm) != 0)
    return refuse(rank, tributary_last_error(comm));
  name_path(comm, path, sizeof path);
  struct contestant self = {
      .rank = rank, .ranks = ranks, .path = path, .all_reduce = all_reduce, .why = why, .context = comm};
  const char* type = getenv("PEERS_TYPE");
  if (type != NULL) {
    const int half = strcmp(type, "float16") == 0;
    self.element = half ? kFloat16 : kBfloat16;
    dtype = half ? TRIBUTARY_FLOAT16 : TRIBUTARY_BFLOAT16;
    self.all_reduce_elements = all_reduce_elements;
  }
  if (getenv("PEERS_REGISTERED") != NULL) {
    self.allocate = allocate;
    self.release = release;
  }
  const int failed = drive(&self);
  tributary_comm_destroy(comm);
  return failed;
}
