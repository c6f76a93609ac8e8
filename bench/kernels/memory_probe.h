#pragma once
// What one core of this machine reaches when it reads some arrays and writes another, with next to no arithmetic
// between: the yardstick for kernels of the same shape.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tributary::bench {

/// One way to walk the arrays. None is the fastest for every shape, so a benchmark takes the best of all of them for
/// its own.
struct MemoryProbe {
  std::string_view name;
  /// Reads `bytes` of every input and writes their bitwise or to `out`. Arrays are 64-byte aligned, bytes a multiple of
  /// 4096.
  void (*run)(std::span<const std::byte* const> inputs, std::byte* out, std::size_t bytes);
};

[[nodiscard]] std::span<const MemoryProbe> memory_probes();

}  // namespace tributary::bench
