#pragma once
// Whose memory a pointer is.
#include <optional>

#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu {

/// The GPU in whose memory it lies. Nothing: the processor reads it itself, as it does pinned and managed memory.
/// Cheap where the process has no CUDA driver loaded. Errc::unsupported: it has one that is too old to be asked.
[[nodiscard]] Result<std::optional<int>> device_of(const void* pointer);

}  // namespace tributary::client::gpu
