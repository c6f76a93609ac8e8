#pragma once
// Which part of an array can move in whole vectors.
#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/cuda/arguments.h"
#include "tributary/kernels/cuda_driver.h"

namespace tributary::kernels::cuda {

/// Elements before the first 16-byte boundary of an address that is a multiple of their size.
[[nodiscard]] constexpr std::uint64_t elements_to_boundary(DeviceAddress address, std::size_t size) noexcept {
  return (kVectorBytes - address % kVectorBytes) % kVectorBytes / size;
}

/// All arrays alike modulo 16: vectors from the first boundary on. Else none.
[[nodiscard]] constexpr Split split_of_reduce(std::span<const DeviceAddress> inputs, DeviceAddress out,
                                              std::uint64_t count, std::size_t size) noexcept {
  const bool alike =
      std::ranges::all_of(inputs, [&](DeviceAddress input) { return input % kVectorBytes == out % kVectorBytes; });
  if (!alike) return {0, 0};
  const std::uint64_t head = std::min(elements_to_boundary(out, size), count);
  return {head, (count - head) * size / kVectorBytes};
}

/// Groups of four elements, where the floats' 16 bytes and the others' 4 * size begin at boundaries of their own
/// together.
[[nodiscard]] constexpr Split split_of_convert(DeviceAddress floats, DeviceAddress others, std::uint64_t count,
                                               std::size_t size) noexcept {
  constexpr std::uint64_t kFour = 4;
  const std::uint64_t head = std::min(elements_to_boundary(floats, sizeof(float)), count);
  if ((others + head * size) % (kFour * size) != 0) return {0, 0};
  return {head, (count - head) / kFour};
}

/// All but the addresses: how lanes share a block, and whether groups of four move as one.
[[nodiscard]] constexpr QuantizeArguments quantize_shape(DeviceAddress floats, DeviceAddress steps, std::uint64_t count,
                                                         std::size_t block) noexcept {
  constexpr std::uint32_t kFour = 4;
  QuantizeArguments shape{};
  shape.count = count;
  shape.block = static_cast<std::uint32_t>(block);
  shape.by_block = reciprocal_of(shape.block, true);
  shape.lanes = shape.block <= 32 ? 8 : shape.block <= 64 ? 16 : 32;
  shape.aligned = floats % kVectorBytes == 0 && steps % kFour == 0 ? 1 : 0;
  return shape;
}

}  // namespace tributary::kernels::cuda
