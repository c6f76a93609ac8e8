#include "tributary/kernels/counters.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/kernel_table.h"
#include "tributary/kernels/reduce.h"

namespace tributary::kernels {
namespace {

/// The results are made and then counted in blocks of this many bytes, which stay in a first cache of 32 KiB.
constexpr std::size_t kCountedBytes = std::size_t{8} << 10;

}  // namespace

void count_values(DType dtype, const void* data, std::size_t count, ValueCounts& found) noexcept {
  static const ConvertTable& table = convert_table(active_target());
  const CountFunction function = table.count_values[static_cast<std::size_t>(dtype)];
  if (function != nullptr) function(data, count, found);
}

// Halves the range until one element is left: together as long as two counts of all elements.
std::size_t first_nan(DType dtype, const void* data, std::size_t count) noexcept {
  const auto* const from = static_cast<const std::byte*>(data);
  const auto has_nan = [&](std::size_t first, std::size_t length) {
    ValueCounts found;
    count_values(dtype, from + first * size_of(dtype), length, found);
    return found.nans > 0;
  };
  if (!has_nan(0, count)) return count;
  std::size_t first = 0;
  for (std::size_t length = count; length > 1;) {
    const std::size_t half = length / 2;
    const bool low = has_nan(first, half);
    if (!low) first += half;
    length = low ? half : length - half;
  }
  return first;
}

void reduce_counted(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                    std::uint32_t divisor, ValueCounts& found) noexcept {
  const std::size_t size = size_of(dtype);
  const std::size_t step = kCountedBytes / size;
  std::array<const void*, kReduceInputsMax> pieces;
  for (std::size_t first = 0; first < count; first += step) {
    const std::size_t length = std::min(step, count - first);
    for (std::size_t k = 0; k < inputs.size(); ++k) pieces[k] = static_cast<const std::byte*>(inputs[k]) + first * size;
    void* const piece = static_cast<std::byte*>(out) + first * size;
    reduce(dtype, op, {pieces.data(), inputs.size()}, piece, length, divisor);
    count_values(dtype, piece, length, found);
  }
}

}  // namespace tributary::kernels
