#pragma once
// The primary context of one device, retained as long as this object lives. The CUDA runtime and PyTorch use the same
// context.
#include <memory>
#include <string>

#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu {

using kernels::cuda::CudaDriver;
using kernels::cuda::CudaResult;
using kernels::cuda::DeviceAddress;

class Context {
 public:
  [[nodiscard]] static Result<std::shared_ptr<Context>> retain(CudaDriver& driver, int device) {
    kernels::cuda::ContextHandle handle = nullptr;
    if (const CudaResult result = driver.primary_context_retain(handle, device); result != CudaResult::success) {
      return std::unexpected(
          cuda_error(driver, result, "retaining the primary context of GPU " + std::to_string(device)));
    }
    return std::shared_ptr<Context>(new Context(driver, device, handle));
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { driver_.primary_context_release(device_); }

  [[nodiscard]] CudaDriver& driver() const noexcept { return driver_; }
  [[nodiscard]] int device() const noexcept { return device_; }

  /// Makes the context current on this thread as long as this object lives; then makes the previous context current.
  class Current {
   public:
    explicit Current(const Context& context)
        : driver_(context.driver_), result_(driver_.context_push(context.handle_)) {}
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current() {
      if (result_ == CudaResult::success) driver_.context_pop();
    }
    [[nodiscard]] CudaResult result() const noexcept { return result_; }

   private:
    CudaDriver& driver_;
    CudaResult result_;
  };

 private:
  Context(CudaDriver& driver, int device, kernels::cuda::ContextHandle handle) noexcept
      : driver_(driver), device_(device), handle_(handle) {}

  CudaDriver& driver_;
  int device_;
  kernels::cuda::ContextHandle handle_;
};

}  // namespace tributary::client::gpu
