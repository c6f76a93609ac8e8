#include "kernels/cpu/cache.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tributary::kernels {
namespace {

constexpr CacheSizes kDefault = {.second = std::size_t{1} << 20, .last = std::size_t{16} << 20};

#if defined(__x86_64__)
/// Reads the sizes from a CPUID leaf: Intel's leaf 4 and AMD's leaf 0x8000001D have the same form. Returns zeros if the
/// leaf has no data.
CacheSizes caches_of(unsigned leaf) noexcept {
  constexpr unsigned kCachesMax = 8;
  CacheSizes sizes = {};
  for (unsigned cache = 0; cache < kCachesMax; ++cache) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(leaf, cache, &eax, &ebx, &ecx, &edx) == 0 || (eax & 0x1F) == 0) break;
    const std::size_t ways = (ebx >> 22) + 1;
    const std::size_t partitions = ((ebx >> 12) & 0x3FF) + 1;
    const std::size_t line_bytes = (ebx & 0xFFF) + 1;
    const std::size_t sets = std::size_t{ecx} + 1;
    const std::size_t bytes = ways * partitions * line_bytes * sets;
    const unsigned level = (eax >> 5) & 0x7;
    if (level == 2) sizes.second = bytes;
    sizes.last = std::max(sizes.last, bytes);
  }
  return sizes;
}

// Asks CPUID instead of sysconf(_SC_LEVEL3_CACHE_SIZE): glibc 2.36 returns 320 MiB for a 32 MiB cache on a virtual AMD
// EPYC.
CacheSizes detect() noexcept {
  for (const unsigned leaf : {0x4U, 0x8000001DU}) {
    const CacheSizes sizes = caches_of(leaf);
    if (sizes.second > 0 && sizes.last > 0) return sizes;
  }
  return kDefault;
}
#else
CacheSizes detect() noexcept {
  return kDefault;
}
#endif

}  // namespace

const CacheSizes& cache_sizes() noexcept {
  static const CacheSizes sizes = detect();
  return sizes;
}

std::size_t stream_bytes() noexcept {
  // Half of the last cache, because other cores use the cache, too. A core gets a smaller part of a large cache: on an
  // Emerald Rapids with 300 MiB, arrays with a total of 48 MiB stayed in the cache, arrays of 96 MiB did not.
  constexpr std::size_t kMost = std::size_t{32} << 20;
  return std::min(cache_sizes().last / 2, kMost);
}

}  // namespace tributary::kernels
