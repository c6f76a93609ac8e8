#pragma once
// Prefetching memory.
#include <cstddef>
#include <cstdint>

namespace tributary::transport::dpdk {

/// Prefetches for writing. Lines that a device, or another processor, has read last must come back first: a store would
/// wait for them, and all stores behind it.
inline void fetch_to_write(std::byte* at, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) {
#if defined(__x86_64__)
    // The compiler uses it only where all its target processors have it; on a processor without it, it does nothing.
    asm volatile("prefetchw %0" : : "m"(at[i]));
#else
    __builtin_prefetch(at + i, 1);
#endif
  }
}

}  // namespace tributary::transport::dpdk
