#pragma once
// Finds the owner of the memory behind a pointer.
#include <optional>

#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu {

/// Returns the GPU in whose memory `pointer` lies; nullopt if the processor can read the memory, also pinned and
/// managed memory. The call is cheap if the process has not loaded a CUDA driver. Errc::unsupported: the driver is too
/// old to answer.
[[nodiscard]] Result<std::optional<int>> device_of(const void* pointer);
/// Returns the same, by the process's driver.
[[nodiscard]] std::optional<int> device_of(kernels::cuda::CudaDriver& driver, const void* pointer);

}  // namespace tributary::client::gpu
