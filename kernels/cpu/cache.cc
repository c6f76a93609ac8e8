#include "cpu/cache.h"

#include <algorithm>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tributary::kernels {
namespace {

constexpr std::size_t kDefaultBytes = std::size_t{16} << 20;

#if defined(__x86_64__)
/// The largest cache in a CPUID leaf of the form that Intel's leaf 4 and AMD's leaf 0x8000001D share; 0 where the leaf
/// says nothing.
std::size_t largest_cache(unsigned leaf) noexcept {
  constexpr unsigned kLevelsMax = 8;
  std::size_t largest = 0;
  for (unsigned level = 0; level < kLevelsMax; ++level) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (__get_cpuid_count(leaf, level, &eax, &ebx, &ecx, &edx) == 0 || (eax & 0x1F) == 0) break;
    const std::size_t ways = (ebx >> 22) + 1;
    const std::size_t partitions = ((ebx >> 12) & 0x3FF) + 1;
    const std::size_t line_bytes = (ebx & 0xFFF) + 1;
    const std::size_t sets = std::size_t{ecx} + 1;
    largest = std::max(largest, ways * partitions * line_bytes * sets);
  }
  return largest;
}

// Not sysconf(_SC_LEVEL3_CACHE_SIZE): glibc 2.36 answers 320 MiB for a 32 MiB cache on a virtual AMD EPYC.
std::size_t detect() noexcept {
  const std::size_t bytes = std::max(largest_cache(0x4), largest_cache(0x8000001D));
  return bytes > 0 ? bytes : kDefaultBytes;
}
#else
std::size_t detect() noexcept {
  return kDefaultBytes;
}
#endif

}  // namespace

std::size_t last_cache_bytes() noexcept {
  static const std::size_t bytes = detect();
  return bytes;
}

}  // namespace tributary::kernels
