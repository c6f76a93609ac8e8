#pragma once
// Memory that is asked for before it is needed.
#include <cstddef>
#include <cstdint>

namespace tributary::transport::dpdk {

/// To be written. What a device, or another processor, has read last must come back first: a store would wait, and all
/// stores behind it.
inline void fetch_to_write(std::byte* at, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) {
#if defined(__x86_64__)
    // The compiler knows it only where all processors that it builds for have it; on those that have not, it does
    // nothing.
    asm volatile("prefetchw %0" : : "m"(at[i]));
#else
    __builtin_prefetch(at + i, 1);
#endif
  }
}

}  // namespace tributary::transport::dpdk
