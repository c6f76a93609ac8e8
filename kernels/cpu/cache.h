#pragma once
#include <cstddef>

namespace tributary::kernels {

struct CacheSizes {
  std::size_t second;  // bytes of one core's second cache
  std::size_t last;    // bytes of the largest cache, which other cores use, too
};

/// Returns this machine's sizes, or a guess if the CPU does not give them.
[[nodiscard]] const CacheSizes& cache_sizes() noexcept;

/// Returns the limit, in bytes read and written together, above which a result is stored past the caches. A larger
/// result would not stay there, and a store that allocates a cache line first reads the line, which is a third of all
/// traffic with two inputs. A smaller result stays in the cache for the code that sends it, although streaming is
/// faster as soon as a core's own caches are full.
[[nodiscard]] std::size_t stream_bytes() noexcept;

}  // namespace tributary::kernels
