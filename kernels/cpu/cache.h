#pragma once
#include <cstddef>

namespace tributary::kernels {

/// Bytes of the last cache that one core reaches, as the processor reports it; a default where it does not. Any thread;
/// asked once.
[[nodiscard]] std::size_t last_cache_bytes() noexcept;

}  // namespace tributary::kernels
