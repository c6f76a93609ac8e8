#pragma once
#include <cstddef>

namespace tributary::kernels {

struct CacheSizes {
  std::size_t second;  // of one core, in bytes
  std::size_t last;    // the largest, which other cores use as well
};

/// This machine's, or a guess where it does not say.
[[nodiscard]] const CacheSizes& cache_sizes() noexcept;

/// From how many bytes on, read and written together, a result goes past the caches: it will not stay there, and a
/// store that allocates a line has to read it first, a third of all traffic at two inputs. Less stays in cache for
/// whoever sends it on, although streaming alone would be faster from where a core's own caches end.
[[nodiscard]] std::size_t stream_bytes() noexcept;

}  // namespace tributary::kernels
