#pragma once
#include "tributary/kernels/cuda_driver.h"

namespace tributary::kernels::cuda {

/// Makes a context current on this thread as long as this object lives; afterwards the earlier context is current
/// again.
class CurrentContext {
 public:
  CurrentContext(CudaDriver& driver, ContextHandle context) : driver_(driver), result_(driver.context_push(context)) {}
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    if (result_ == CudaResult::success) driver_.context_pop();
  }
  [[nodiscard]] CudaResult result() const noexcept { return result_; }

 private:
  CudaDriver& driver_;
  CudaResult result_;
};

}  // namespace tributary::kernels::cuda
