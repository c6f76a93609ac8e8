#pragma once
// The object behind *request. NCCL passes it back only to test() of either table.
#include "client/plugins/nccl/profiler_event.h"

namespace tributary::nccl {

class Request {
 public:
  virtual ~Request() = default;
  /// Always writes `done`. Writes `sizes` if it is not NULL and the request has ended. After a request has ended or
  /// failed, its object may be used again when this returns.
  virtual abi::Result test(int* done, int* sizes) = 0;

  ProfilerEvent event;  // of this message; the calls of the net table use it
};

/// Returns the request for calls that need not wait, such as a flush of host memory. It is never NULL: NULL would mean
/// "call again".
[[nodiscard]] Request* finished_request() noexcept;

}  // namespace tributary::nccl
