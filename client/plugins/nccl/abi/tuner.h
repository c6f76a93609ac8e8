#pragma once
// The tables of the tuner: ncclTunerPlugin_v2 to v6. getCollInfo may lower or raise the cost of an algorithm for one
// call.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl::abi {

enum class Function : int { broadcast = 0, reduce = 1, all_gather = 2, reduce_scatter = 3, all_reduce = 4 };
enum class Algorithm : int {
  tree = 0,
  ring = 1,
  collnet_direct = 2,
  collnet_chain = 3,
  nvls = 4,
  nvls_tree = 5,
  pat = 6
};
enum class Protocol : int { low_latency = 0, low_latency_128 = 1, simple = 2 };
inline constexpr float kIgnored = -1.0F;  // a cost in the table: NCCL does not offer this algorithm with this protocol

using TunerInitOld = Result (*)(std::size_t ranks, std::size_t nodes, Logger, void** context);
// The last two parameters point to structures that this plugin neither reads nor changes.
using TunerInit = Result (*)(void** context, std::uint64_t comm_id, std::size_t ranks, std::size_t nodes, Logger,
                             void* nvlink_domains, void* constants);
using TunerEnd = Result (*)(void* context);
/// `costs` is declared as float**, but is one array of algorithms x protocols floats, in microseconds.
using CollectiveInfo = Result (*)(void* context, Function, std::size_t bytes, int pipelined, float** costs,
                                  int algorithms, int protocols, int registered_buffer, int* channels);

struct TunerV2 {
  const char* name;
  TunerInitOld init;
  Result (*collective_info)(void* context, Function, std::size_t bytes, int collnet_support, int nvls_support,
                            int pipelined, int* algorithm, int* protocol, int* channels);
  TunerEnd destroy;
};
struct TunerV3 {
  const char* name;
  TunerInitOld init;
  Result (*collective_info)(void* context, Function, std::size_t bytes, int pipelined, float** costs, int algorithms,
                            int protocols, int* channels);
  TunerEnd destroy;
};
struct TunerV4 {
  const char* name;
  TunerInitOld init;
  CollectiveInfo collective_info;
  TunerEnd destroy;
};
struct TunerV5 {
  const char* name;
  TunerInit init;
  CollectiveInfo collective_info;
  TunerEnd finalize;
};
struct TunerV6 {
  const char* name;
  TunerInit init;
  CollectiveInfo collective_info;
  TunerEnd finalize;
  Result (*chunk_size)(void* context, Function, std::size_t bytes, int algorithm, int protocol, int channels,
                       std::size_t* chunk_bytes);  // this pointer may be NULL
};
static_assert(sizeof(TunerV2) == 32 && sizeof(TunerV3) == 32 && sizeof(TunerV4) == 32 && sizeof(TunerV5) == 32 &&
              sizeof(TunerV6) == 40);

}  // namespace tributary::nccl::abi
