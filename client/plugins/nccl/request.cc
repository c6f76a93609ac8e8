#include "client/plugins/nccl/request.h"

namespace tributary::nccl {
namespace {

class FinishedRequest final : public Request {
 public:
  abi::Result test(int* done, int* sizes) override {
    *done = 1;
    if (sizes != nullptr) *sizes = 0;
    return abi::Result::success;
  }
};

}  // namespace

Request* finished_request() noexcept {
  static FinishedRequest one;
  return &one;
}

}  // namespace tributary::nccl
