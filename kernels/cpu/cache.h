#pragma once
#include <cstddef>

namespace tributary::kernels {

struct CacheSizes {
  std::size_t second;  // size of one core's second cache, in bytes
  std::size_t last;    // the largest, which other cores use as well
};

/// Returns this machine's sizes, or a guess where the CPU does not tell them.
[[nodiscard]] const CacheSizes& cache_sizes() noexcept;

/// Returns from how many bytes on, read and written together, a result is stored past the caches: it would not stay
/// there, and a store that allocates a line first reads it, which is a third of all traffic with two inputs. A smaller
/// result stays in cache for the code that sends it, although streaming is faster as soon as a core's own caches are
/// full.
[[nodiscard]] std::size_t stream_bytes() noexcept;

}  // namespace tributary::kernels
