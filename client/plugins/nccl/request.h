#pragma once
// What *request points at: test() of either table gets it back and nothing else.
#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl {

class Request {
 public:
  virtual ~Request() = default;
  /// `done` is always written, `sizes` where it is no NULL and the request has ended. A request that has ended, or
  /// failed, is free for other use when this returns.
  virtual abi::Result test(int* done, int* sizes) = 0;
};

/// For calls that have nothing to wait for, as a flush of host memory. Never NULL: that would mean "call again".
[[nodiscard]] Request* finished_request() noexcept;

}  // namespace tributary::nccl
