#pragma once
// Prefetching memory.
#include <cstddef>
#include <cstdint>

namespace tributary::transport::dpdk {

/// Prefetches memory for writing. If a device or another processor has read a cache line last, the line must come back
/// before a store to it; this store, and all later ones, would wait.
inline void fetch_to_write(std::byte* at, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) {
#if defined(__x86_64__)
    // The compiler uses this instruction only where all its target processors have it; on a processor without it the
    // instruction has no effect.
    asm volatile("prefetchw %0" : : "m"(at[i]));
#else
    __builtin_prefetch(at + i, 1);
#endif
  }
}

}  // namespace tributary::transport::dpdk
