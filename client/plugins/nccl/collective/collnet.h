#pragma once
// The calls of the CollNet tables, as the newest version has them. tables/collnet.cc makes all versions from these
// calls.
#include "client/plugins/nccl/abi/collnet.h"

namespace tributary::nccl::collnet {

/// Succeeds without a manager, because all processes must offer the same devices. Later connect() decides whether the
/// ranks use CollNet: it has the same outcome on all ranks.
abi::Result init(int version, void** context, abi::Logger logger);
abi::Result devices(int* count);
abi::Result listen(int device, void* handle, void** listen_comm);
abi::Result connect(void* handles[], int ranks, int rank, void* listen_comm, void** collective_comm);
abi::Result reduce_support(abi::DataType type, abi::RedOp op, int* supported);
abi::Result register_memory(void* comm, void* data, std::size_t bytes, int pointer_kind, void** memory);
abi::Result register_dma_buf(void* comm, void* data, std::size_t bytes, int pointer_kind, std::uint64_t offset,
                             int descriptor, void** memory);
abi::Result deregister_memory(void* comm, void* memory);
abi::Result all_reduce(void* comm, void* send, void* receive, std::size_t count, abi::DataType type, abi::RedOp op,
                       void** request);
abi::Result all_gather(void* comm, void* send, int parts, void* receive, std::size_t bytes_per_rank,
                       std::size_t window_offset, std::size_t window_bytes, void** request);
abi::Result reduce_scatter(void* comm, int parts, void* send, void* receive, std::size_t bytes_per_rank,
                           std::size_t window_offset, std::size_t window_bytes, abi::DataType type, abi::RedOp op,
                           void** request);
abi::Result flush(void** request);
abi::Result test(void* request, int* done, int* sizes);
abi::Result close_collective(void* comm);
abi::Result close_listen(void* listen_comm);
abi::Result finalize(void* context);

}  // namespace tributary::nccl::collnet
