#pragma once
// Computes the part of an array that can move in whole vectors.
#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/cuda/arguments.h"
#include "tributary/kernels/convert.h"
#include "tributary/kernels/cuda_driver.h"

namespace tributary::kernels::cuda {

/// Returns the number of elements from `address`, which is a multiple of their size, to the next 16-byte boundary.
[[nodiscard]] constexpr std::uint64_t elements_to_boundary(DeviceAddress address, std::size_t size) noexcept {
  return (kVectorBytes - address % kVectorBytes) % kVectorBytes / size;
}

/// If all addresses are equal modulo 16, vectors move from the first boundary on; else there are no vectors.
[[nodiscard]] constexpr Split split_of_reduce(std::span<const DeviceAddress> inputs, DeviceAddress out,
                                              std::uint64_t count, std::size_t size) noexcept {
  const bool alike =
      std::ranges::all_of(inputs, [&](DeviceAddress input) { return input % kVectorBytes == out % kVectorBytes; });
  if (!alike) return {0, 0};
  const std::uint64_t head = std::min(elements_to_boundary(out, size), count);
  return {head, (count - head) * size / kVectorBytes};
}

/// Groups of four elements move from the first element at which `floats` is at a multiple of 16 and `others` at a
/// multiple of 4 * size; without such an element there are no groups.
[[nodiscard]] constexpr Split split_of_convert(DeviceAddress floats, DeviceAddress others, std::uint64_t count,
                                               std::size_t size) noexcept {
  constexpr std::uint64_t kFour = 4;
  const std::uint64_t head = std::min(elements_to_boundary(floats, sizeof(float)), count);
  if ((others + head * size) % (kFour * size) != 0) return {0, 0};
  return {head, (count - head) / kFour};
}

/// Returns the arguments without the addresses: the number of lanes for a block, and whether groups of four move at
/// once.
[[nodiscard]] constexpr QuantizeArguments quantize_shape(DeviceAddress floats, DeviceAddress steps, std::uint64_t count,
                                                         std::size_t block) noexcept {
  constexpr std::uint32_t kFour = 4;
  static_assert(kScaleBlockMin == kScaleUnit);
  QuantizeArguments shape{};
  shape.count = count;
  shape.block = static_cast<std::uint32_t>(block);
  shape.by_units = reciprocal_of(shape.block / kScaleUnit, false);
  shape.lanes = shape.block <= 64 ? 8 : shape.block <= 128 ? 16 : 32;
  shape.aligned = floats % kVectorBytes == 0 && steps % kFour == 0 ? 1 : 0;
  return shape;
}

}  // namespace tributary::kernels::cuda
