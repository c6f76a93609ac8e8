// A library for LD_PRELOAD. It makes one element of rank 1's sums of float32 wrong.
#include <dlfcn.h>

#include <cstring>

#include "tributary/tributary.h"

extern "C" TRIBUTARY_API tributary_status tributary_all_reduce(const void* send, void* recv, size_t count,
                                                               tributary_dtype dtype, tributary_op op,
                                                               tributary_comm* comm, tributary_request** request) {
  static const auto real = reinterpret_cast<decltype(&tributary_all_reduce)>(dlsym(RTLD_NEXT, "tributary_all_reduce"));
  const tributary_status status = real(send, recv, count, dtype, op, comm, request);
  int rank = 0;
  tributary_comm_rank(comm, &rank);
  constexpr size_t kTarget = 1000;  // perf's own sums are shorter
  if (rank == 1 && count > kTarget && dtype == TRIBUTARY_FLOAT32)
    static_cast<unsigned char*>(recv)[4 * kTarget] ^= 0x40;
  return status;
}
