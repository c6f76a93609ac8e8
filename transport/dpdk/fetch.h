#pragma once
// Prefetching memory.
#include <cstddef>
#include <cstdint>

namespace tributary::transport::dpdk {

/// Prefetches for writing. A cache line that a device or another processor has read last must come back first; a store
/// to it would wait for it, and so would all stores behind that one.
inline void fetch_to_write(std::byte* at, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) {
#if defined(__x86_64__)
    // The compiler uses this instruction only where all its target processors have it; a processor without it does
    // nothing here.
    asm volatile("prefetchw %0" : : "m"(at[i]));
#else
    __builtin_prefetch(at + i, 1);
#endif
  }
}

}  // namespace tributary::transport::dpdk
