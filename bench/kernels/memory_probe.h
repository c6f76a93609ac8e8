#pragma once
// The rate at which one core of this machine reads some arrays and writes another, with almost no arithmetic. It is the
// yardstick for kernels of the same shape.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tributary::bench {

/// One way to go through the arrays. No way is the fastest for every shape, so a benchmark takes the best way for its
/// shape.
struct MemoryProbe {
  std::string_view name;
  /// Reads `bytes` of every input, and writes their bitwise "or" to `out`. Arrays are 64-byte aligned, and `bytes` is a
  /// multiple of 4096.
  void (*run)(std::span<const std::byte* const> inputs, std::byte* out, std::size_t bytes);
};

[[nodiscard]] std::span<const MemoryProbe> memory_probes();

/// The shape of a conversion: `read` blocks from one array for every `written` blocks to another, which the conversion
/// also reads if it adds to it.
struct ConvertShape {
  std::size_t read;
  std::size_t written;
  bool reads_out;
};

struct ConvertProbe {
  std::string_view name;
  /// Goes through `groups` groups of the shape's blocks, each of 64 bytes. Arrays are 64-byte aligned.
  void (*run)(const std::byte* in, std::byte* out, std::size_t groups);
};

/// Returns the probes for 4 to 1, 4 to 2, 1 to 4 and 2 to 4 blocks; for the last two also the probes that read the
/// result. Empty for other shapes.
[[nodiscard]] std::span<const ConvertProbe> convert_probes(ConvertShape shape);

}  // namespace tributary::bench
