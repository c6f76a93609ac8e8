#pragma once
// The calls of the net tables, as the newest version has them. tables/net.cc makes all versions from these calls.
#include "client/plugins/nccl/abi/net.h"

namespace tributary::nccl::net {

/// `version` is the version of the table that NCCL uses. Only the log needs it. `config` and `profiler` may be NULL.
abi::Result init(int version, void** context, abi::Logger logger, const abi::CommConfig* config = nullptr,
                 abi::ProfilerCallback profiler = nullptr);
abi::Result devices(int* count);
abi::Result listen(void* context, int device, void* handle, void** listen_comm);
/// `config` is only in calls of v10; later versions pass it to init().
abi::Result connect(void* context, int device, void* handle, void** send_comm, const abi::CommConfig* config = nullptr);
abi::Result accept(void* listen_comm, void** receive_comm);
abi::Result register_memory(void* comm, void* data, std::size_t bytes, int pointer_kind, void** memory);
abi::Result deregister_memory(void* comm, void* memory);
/// `parent` is NCCL's object under which its profiler shows the message; NULL: NCCL gives none.
abi::Result send(void* send_comm, void* data, std::size_t bytes, int tag, void** request, void* parent = nullptr);
abi::Result receive(void* receive_comm, int n, void** data, const std::size_t* bytes, const int* tags, void** request,
                    void* parent = nullptr);
abi::Result flush(void** request);
abi::Result test(void* request, int* done, int* sizes);
/// Once test() has returned "done" for a message, the message arrives, whichever end closes first. A send that no
/// test() has ended may be lost, but never arrives in part: the receive then fails. NCCL's own socket transport
/// promises no more, because it moves bytes only inside test().
abi::Result close_send(void* send_comm);
abi::Result close_receive(void* receive_comm);
abi::Result close_listen(void* listen_comm);
abi::Result finalize(void* context);

}  // namespace tributary::nccl::net
