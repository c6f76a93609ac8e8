#pragma once
// Events of NCCL's profiler: how long a message of the plugin's own connections is under way.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

/// Sets NCCL's function that takes events. NULL leaves the function as it is. Any thread may call it.
void set_profiler(abi::ProfilerCallback callback) noexcept;

/// One message in NCCL's profiler. The event has the layout of NCCL's own socket transport
/// (ncclProfilerNetSockDescr_v1), so profilers that know that transport show these messages, too.
class ProfilerEvent {
 public:
  enum class Kind : std::uint8_t { send = 0, receive = 1 };  // NCCL_SOCKET_SEND, NCCL_SOCKET_RECV

  /// Does nothing without a parent, or if NCCL has no profiler.
  void start(void* parent, Kind kind, std::size_t bytes) noexcept;
  /// Does nothing if start() has started nothing.
  void stop() noexcept;

 private:
  void* handle_ = nullptr;  // the profiler's handle
};

}  // namespace tributary::nccl
