#pragma once
#include <cstddef>

namespace tributary::kernels {

struct CacheSizes {
  std::size_t second;  // of one core, in bytes
  std::size_t last;    // the largest, which other cores use as well
};

/// This machine's, or a guess where it does not say.
[[nodiscard]] const CacheSizes& cache_sizes() noexcept;

}  // namespace tributary::kernels
