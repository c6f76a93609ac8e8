#pragma once
// The tables for collectives in the network: ncclCollNetPlugin_v6 to v12.
#include "client/plugins/nccl/abi/calls.h"

namespace tributary::nccl::abi {

/// One piece of a buffer.
struct PartV8 {
  void* memory;
  void* address;
  std::uint32_t bytes;
};
struct Part {
  void* memory;
  void* address;
  std::size_t bytes;
};
static_assert(sizeof(PartV8) == 24 && sizeof(Part) == 24 && offsetof(Part, bytes) == 16);

using ConnectGroup = Result (*)(void* handles[], int ranks, int rank, void* listen_comm, void** collective_comm);
using ReduceSupport = Result (*)(DataType, RedOp, int* supported);
template <class Count>  // Count: int up to v8, std::size_t later
using AllReduce = Result (*)(void* comm, void* send, void* receive, Count count, DataType, RedOp, void* send_memory,
                             void* receive_memory, void** request);
template <class Piece>
using AllGather = Result (*)(void* comm, void* send, int n, Piece* receive, std::size_t bytes_per_rank,
                             std::size_t window_offset, std::size_t window_bytes, void* send_memory, void** request);
template <class Piece>
using ReduceScatter = Result (*)(void* comm, int n, Piece* send, void* receive, std::size_t bytes_per_rank,
                                 std::size_t window_offset, std::size_t window_bytes, DataType, RedOp,
                                 void* receive_memory, void** request);
using FlushGroup = Result (*)(void* comm, void* data, int bytes, void* memory, void** request);

template <class Properties>
struct CollNetV6AndV7 {
  const char* name;
  InitOld init;
  Devices devices;
  GetProperties<Properties> get_properties;
  ListenOld listen;
  ConnectGroup connect;
  ReduceSupport reduce_support;
  RegisterMemory<int> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  AllReduce<int> all_reduce;
  FlushGroup flush;
  Test test;
  Close close_collective, close_listen;
};
using CollNetV6 = CollNetV6AndV7<PropertiesV6>;
using CollNetV7 = CollNetV6AndV7<PropertiesV7>;
static_assert(sizeof(CollNetV6) == 15 * sizeof(void*) && sizeof(CollNetV7) == sizeof(CollNetV6));

struct CollNetV8 {
  const char* name;
  InitOld init;
  Devices devices;
  GetProperties<PropertiesV8> get_properties;
  ListenOld listen;
  ConnectGroup connect;
  ReduceSupport reduce_support;
  RegisterMemory<std::size_t> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  AllReduce<int> all_reduce;
  AllGather<PartV8> all_gather;
  ReduceScatter<PartV8> reduce_scatter;
  FlushGroup flush;
  Test test;
  Close close_collective, close_listen;
};
static_assert(sizeof(CollNetV8) == 17 * sizeof(void*));

struct CollNetV9 {
  const char* name;
  InitOld init;
  Devices devices;
  GetProperties<PropertiesV9> get_properties;
  ListenOld listen;
  ConnectGroup connect;
  ReduceSupport reduce_support;
  RegisterMemory<std::size_t> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  AllReduce<std::size_t> all_reduce;
  AllGather<Part> all_gather;
  ReduceScatter<Part> reduce_scatter;
  FlushGroup flush;
  Test test;
  Close close_collective, close_listen;
  MakeVirtualDevice<4> make_virtual_device;
};
using CollNetV10 = CollNetV9;
static_assert(sizeof(CollNetV9) == 18 * sizeof(void*));

template <class Properties, std::size_t kDevices>
struct CollNetV11AndV12 {
  const char* name;
  Result (*init)(void** context, std::uint64_t comm_id, Logger);
  Devices devices;
  GetProperties<Properties> get_properties;
  Listen listen;
  ConnectGroup connect;
  ReduceSupport reduce_support;
  RegisterMemory<std::size_t> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  AllReduce<std::size_t> all_reduce;
  AllGather<Part> all_gather;
  ReduceScatter<Part> reduce_scatter;
  FlushGroup flush;
  Test test;
  Close close_collective, close_listen;
  MakeVirtualDevice<kDevices> make_virtual_device;
  Finalize finalize;
};
using CollNetV11 = CollNetV11AndV12<PropertiesV11, 4>;
using CollNetV12 = CollNetV11AndV12<PropertiesV12, 8>;
static_assert(sizeof(CollNetV11) == 19 * sizeof(void*) && sizeof(CollNetV11) == 0x98 &&
              sizeof(CollNetV12) == sizeof(CollNetV11));
static_assert(offsetof(CollNetV11, all_reduce) == 10 * sizeof(void*) &&
              offsetof(CollNetV11, finalize) == 18 * sizeof(void*));

}  // namespace tributary::nccl::abi
