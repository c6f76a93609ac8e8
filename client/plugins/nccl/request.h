#pragma once
// The object behind *request, which NCCL passes back to test() of either table, and nowhere else.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

class Request {
 public:
  virtual ~Request() = default;
  /// Always writes `done`; writes `sizes` if it is not NULL and the request has ended. A request that has ended or
  /// failed may be used again when this returns.
  virtual abi::Result test(int* done, int* sizes) = 0;
};

/// The request of calls that have nothing to wait for, such as a flush of host memory. Never NULL: that would mean
/// "call again".
[[nodiscard]] Request* finished_request() noexcept;

}  // namespace tributary::nccl
