#pragma once
// The GPU in whose memory a rank of the benchmark keeps its buffers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "client/gpu/context.h"

namespace tributary::cli {

/// One GPU, with its primary context, which the library uses, too. It makes copies on a stream of its own.
class PerfGpu {
 public:
  /// Loads this host's CUDA driver, and opens the GPU with number `local_rank` modulo the number of GPUs.
  /// Errc::unreachable: there is no driver or no GPU; the message names --memory, the reason, and what to do.
  [[nodiscard]] static Result<std::shared_ptr<PerfGpu>> open(std::uint32_t local_rank);
  PerfGpu(const PerfGpu&) = delete;
  PerfGpu& operator=(const PerfGpu&) = delete;
  ~PerfGpu();

  [[nodiscard]] int device() const noexcept { return context_->device(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }  // the driver's name for it

  /// Errc::exhausted: the GPU has too little memory.
  [[nodiscard]] Result<std::byte*> allocate(std::uint64_t bytes);
  void free(std::byte* memory) noexcept;
  /// Copies between host memory and this GPU's memory, and returns when the copy has ended.
  [[nodiscard]] Status copy(std::byte* to, const std::byte* from, std::uint64_t bytes);

 private:
  PerfGpu(std::unique_ptr<client::gpu::CudaDriver> driver, std::shared_ptr<client::gpu::Context> context);
  [[nodiscard]] std::unexpected<Error> failed(client::gpu::CudaResult result, const std::string& what) const;

  std::unique_ptr<client::gpu::CudaDriver> driver_;
  std::shared_ptr<client::gpu::Context> context_;
  kernels::cuda::StreamHandle stream_ = nullptr;
  std::string name_;
};

}  // namespace tributary::cli
