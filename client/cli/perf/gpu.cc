#include "client/cli/perf/gpu.h"

#include <utility>

#include "client/gpu/path_choice.h"

namespace tributary::cli {
namespace {

using client::gpu::Context;
using client::gpu::CudaDriver;
using client::gpu::CudaResult;
using client::gpu::DeviceAddress;

DeviceAddress address_of(const std::byte* memory) {
  return reinterpret_cast<DeviceAddress>(memory);
}

std::unexpected<Error> no_gpu(const std::string& reason) {
  return fail(Errc::unreachable, "--memory cuda: " + reason +
                                     "; start this rank on a host whose GPUs nvidia-smi lists, or pass --memory host");
}

}  // namespace

PerfGpu::PerfGpu(std::unique_ptr<CudaDriver> driver, std::shared_ptr<Context> context)
    : driver_(std::move(driver)),
      context_(std::move(context)),
      name_(client::gpu::gpu_facts(*driver_, context_->device()).name) {}

Result<std::shared_ptr<PerfGpu>> PerfGpu::open(std::uint32_t local_rank) {
  auto driver = kernels::cuda::open_cuda_driver();
  if (!driver) return no_gpu(driver.error().message);
  int count = 0;
  if (const CudaResult result = (*driver)->device_count(count); result != CudaResult::success)
    return no_gpu(cuda_error(**driver, result, "counting GPUs").message);
  if (count < 1) return no_gpu("the CUDA driver lists no GPU (see CUDA_VISIBLE_DEVICES)");
  const auto device = static_cast<int>(local_rank % static_cast<std::uint32_t>(count));
  auto context = Context::retain(**driver, device);
  if (!context) return no_gpu(context.error().message);
  std::shared_ptr<PerfGpu> gpu(new PerfGpu(std::move(*driver), std::move(*context)));
  const Context::Current current(*gpu->context_);
  CudaResult result = current.result();
  if (result == CudaResult::success) result = gpu->driver_->stream_create(gpu->stream_);
  if (result == CudaResult::success) return gpu;
  gpu->stream_ = nullptr;
  return no_gpu(gpu->failed(result, "making a stream on").error().message);
}

PerfGpu::~PerfGpu() {
  const Context::Current current(*context_);
  if (stream_ != nullptr && current.result() == CudaResult::success) driver_->stream_destroy(stream_);
}

std::unexpected<Error> PerfGpu::failed(CudaResult result, const std::string& what) const {
  return std::unexpected(cuda_error(*driver_, result, what + " GPU " + std::to_string(device())));
}

Result<std::byte*> PerfGpu::allocate(std::uint64_t bytes) {
  DeviceAddress address = 0;
  const Context::Current current(*context_);
  CudaResult result = current.result();
  if (result == CudaResult::success) result = driver_->memory_allocate(address, bytes);
  if (result != CudaResult::success) return failed(result, "allocating " + std::to_string(bytes) + " bytes of");
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

void PerfGpu::free(std::byte* memory) noexcept {
  const Context::Current current(*context_);
  if (current.result() == CudaResult::success) driver_->memory_free(address_of(memory));
}

Status PerfGpu::copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes == 0) return {};
  const Context::Current current(*context_);
  CudaResult result = current.result();
  if (result == CudaResult::success) result = driver_->copy(address_of(to), address_of(from), bytes, stream_);
  if (result == CudaResult::success) result = driver_->stream_synchronize(stream_);
  if (result != CudaResult::success)
    return failed(result, "copying " + std::to_string(bytes) + " bytes from or to the memory of");
  return {};
}

}  // namespace tributary::cli
