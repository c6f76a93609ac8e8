#pragma once
// The tables for point-to-point messages: ncclNetPlugin_v6 to v12.
#include "client/plugins/nccl/abi/calls.h"

namespace tributary::nccl::abi {

using Accept = Result (*)(void* listen_comm, void** receive_comm, DeviceHandle** device);
template <class Size>  // Size: int up to v8, std::size_t later
using SendOld = Result (*)(void* send_comm, void* data, Size bytes, int tag, void* memory, void** request);
template <class Size>
using ReceiveOld = Result (*)(void* receive_comm, int n, void** data, Size* bytes, int* tags, void** memory,
                              void** request);
using Send = Result (*)(void* send_comm, void* data, std::size_t bytes, int tag, void* memory, void* profiler,
                        void** request);
using Receive = Result (*)(void* receive_comm, int n, void** data, std::size_t* bytes, int* tags, void** memory,
                           void** profiler, void** request);
using FlushNet = Result (*)(void* receive_comm, int n, void** data, int* bytes, void** memory, void** request);
using DeviceMemory = Result (*)(void* comm, void* memory, void** device_memory);
using ReceiveConsumed = Result (*)(void* receive_comm, int n, void* request);

struct NetV6 {
  const char* name;
  InitOld init;
  Devices devices;
  GetProperties<PropertiesV6> get_properties;
  ListenOld listen;
  Result (*connect)(int device, void* handle, void** send_comm);
  Result (*accept)(void* listen_comm, void** receive_comm);
  RegisterMemory<int> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  SendOld<int> send;
  ReceiveOld<int> receive;
  FlushNet flush;
  Test test;
  Close close_send, close_receive, close_listen;
};
static_assert(sizeof(NetV6) == 17 * sizeof(void*));

template <class Properties, class RegisterSize>
struct NetV7AndV8 {
  const char* name;
  InitOld init;
  Devices devices;
  GetProperties<Properties> get_properties;
  ListenOld listen;
  Result (*connect)(int device, void* handle, void** send_comm, DeviceHandle** offload);
  Accept accept;
  RegisterMemory<RegisterSize> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  SendOld<int> send;
  ReceiveOld<int> receive;
  FlushNet flush;
  Test test;
  Close close_send, close_receive, close_listen;
  DeviceMemory device_memory;
  ReceiveConsumed receive_consumed;
};
using NetV7 = NetV7AndV8<PropertiesV7, int>;
using NetV8 = NetV7AndV8<PropertiesV8, std::size_t>;
static_assert(sizeof(NetV7) == 19 * sizeof(void*) && sizeof(NetV8) == sizeof(NetV7));

struct NetV9 {
  const char* name;
  InitOld init;
  Devices devices;
  GetProperties<PropertiesV9> get_properties;
  ListenOld listen;
  Result (*connect)(int device, void* handle, void** send_comm, DeviceHandle** offload);
  Accept accept;
  RegisterMemory<std::size_t> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  SendOld<std::size_t> send;
  ReceiveOld<std::size_t> receive;
  FlushNet flush;
  Test test;
  Close close_send, close_receive, close_listen;
  DeviceMemory device_memory;
  ReceiveConsumed receive_consumed;
  MakeVirtualDevice<4> make_virtual_device;
};
static_assert(sizeof(NetV9) == 20 * sizeof(void*));

struct NetV10 {
  const char* name;
  Result (*init)(Logger, ProfilerCallback);
  Devices devices;
  GetProperties<PropertiesV10> get_properties;
  ListenOld listen;
  Result (*connect)(int device, CommConfig* config, void* handle, void** send_comm, DeviceHandle** offload);
  Accept accept;
  RegisterMemory<std::size_t> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  Send send;
  Receive receive;
  FlushNet flush;
  Test test;
  Close close_send, close_receive, close_listen;
  DeviceMemory device_memory;
  ReceiveConsumed receive_consumed;
  MakeVirtualDevice<4> make_virtual_device;
};
static_assert(sizeof(NetV10) == 20 * sizeof(void*));

template <class Properties, std::size_t kDevices>
struct NetV11AndV12 {
  const char* name;
  Result (*init)(void** context, std::uint64_t comm_id, CommConfig* config, Logger, ProfilerCallback);
  Devices devices;
  GetProperties<Properties> get_properties;
  Listen listen;
  Result (*connect)(void* context, int device, void* handle, void** send_comm, DeviceHandle** offload);
  Accept accept;
  RegisterMemory<std::size_t> register_memory;
  RegisterDmaBuf register_dma_buf;
  DeregisterMemory deregister_memory;
  Send send;
  Receive receive;
  FlushNet flush;
  Test test;
  Close close_send, close_receive, close_listen;
  DeviceMemory device_memory;
  ReceiveConsumed receive_consumed;
  MakeVirtualDevice<kDevices> make_virtual_device;
  Finalize finalize;
  Result (*set_attributes)(void* context, NetAttributes* attributes);
};
using NetV11 = NetV11AndV12<PropertiesV11, 4>;
using NetV12 = NetV11AndV12<PropertiesV12, 8>;
static_assert(sizeof(NetV11) == 22 * sizeof(void*) && sizeof(NetV11) == 0xb0 && sizeof(NetV12) == sizeof(NetV11));
static_assert(offsetof(NetV11, receive) == 11 * sizeof(void*) && offsetof(NetV11, finalize) == 20 * sizeof(void*));

}  // namespace tributary::nccl::abi
