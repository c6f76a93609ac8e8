#pragma once
// Finds the owner of the memory behind a pointer.
#include <optional>

#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu {

/// Returns the GPU in whose memory `pointer` lies; nullopt if the processor can read it, as it can pinned and managed
/// memory. Cheap if the process has no CUDA driver loaded. Errc::unsupported: the driver is too old to be asked.
[[nodiscard]] Result<std::optional<int>> device_of(const void* pointer);

}  // namespace tributary::client::gpu
