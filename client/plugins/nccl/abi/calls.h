#pragma once
// The function types that several tables share, or several versions of one table.
#include "client/plugins/nccl/abi/properties.h"

namespace tributary::nccl::abi {

using Devices = Result (*)(int* devices);
template <class Properties>
using GetProperties = Result (*)(int device, Properties* properties);
template <std::size_t kDevices>
using MakeVirtualDevice = Result (*)(int* device, VirtualDevice<kDevices>* parts);

using InitOld = Result (*)(Logger);                                          // CollNet up to v10, net up to v9
using ListenOld = Result (*)(int device, void* handle, void** listen_comm);  // up to v10
using Listen = Result (*)(void* context, int device, void* handle, void** listen_comm);
using Finalize = Result (*)(void* context);

template <class Size>  // Size: int up to v7, std::size_t later
using RegisterMemory = Result (*)(void* comm, void* data, Size bytes, int pointer_kind, void** memory);
using RegisterDmaBuf = Result (*)(void* comm, void* data, std::size_t bytes, int pointer_kind, std::uint64_t offset,
                                  int descriptor, void** memory);
using DeregisterMemory = Result (*)(void* comm, void* memory);

using Test = Result (*)(void* request, int* done, int* sizes);
using Close = Result (*)(void* comm);

}  // namespace tributary::nccl::abi
