#pragma once
// Whole numbers of 1 to 16 bytes in memory, one after the other, in two's complement, little-endian, as in forms. A
// number is read and written with the bytes of its neighbours, by one instruction in place of several. Only the last
// numbers lack such neighbours.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::kernels {

/// Returns how many of `count` numbers of `width` bytes have at least `bytes` bytes from their start to the array's
/// end.
[[nodiscard]] constexpr std::size_t followed(std::size_t count, std::size_t width, std::size_t bytes) noexcept {
  return count * width < bytes ? 0 : (count * width - bytes) / width + 1;
}

/// sums[i] += numbers[i] * 2^shift
template <class Number, unsigned kWidth>
void add_numbers(const std::byte* numbers, std::size_t count, int shift, Number* sums) noexcept {
  constexpr unsigned kUnused = 8 * (sizeof(Number) - kWidth);
  const auto number_at = [&](std::size_t i, std::size_t bytes) {
    Number number = 0;
    std::memcpy(&number, numbers + i * kWidth, bytes);
    return (number << kUnused) >> kUnused;
  };
  const std::size_t whole = followed(count, kWidth, sizeof(Number));
  // A shift by a variable number of places costs much in 128 bits, and the number with the least exponent needs none.
  if (sizeof(Number) > sizeof(std::uint64_t) && shift == 0) {
    for (std::size_t i = 0; i < whole; ++i) sums[i] += number_at(i, sizeof(Number));
  } else {
    for (std::size_t i = 0; i < whole; ++i) sums[i] += number_at(i, sizeof(Number)) << shift;
  }
  for (std::size_t i = whole; i < count; ++i) sums[i] += number_at(i, kWidth) << shift;
}

/// numbers[i] = sums[i] / 2^zeros
template <class Number, unsigned kWidth>
void put_numbers(const Number* sums, std::size_t count, unsigned zeros, std::byte* numbers) noexcept {
  const auto put = [&](std::size_t i, std::size_t bytes) {
    const Number number = sums[i] >> zeros;
    std::memcpy(numbers + i * kWidth, &number, bytes);
  };
  const std::size_t whole = followed(count, kWidth, sizeof(Number));
  for (std::size_t i = 0; i < whole; ++i) put(i, sizeof(Number));
  for (std::size_t i = whole; i < count; ++i) put(i, kWidth);
}

/// Calls the function for this width, 1 to sizeof(Number).
template <class Number, class Function>
void with_width(unsigned width, Function function) noexcept {
  TRIBUTARY_ASSERT(width >= 1 && width <= sizeof(Number), "numbers of {} bytes", width);
  [&]<unsigned... kWidths>(std::integer_sequence<unsigned, kWidths...>) {
    static_cast<void>(
        ((width == kWidths + 1 ? (function(std::integral_constant<unsigned, kWidths + 1>()), true) : false) || ...));
  }(std::make_integer_sequence<unsigned, sizeof(Number)>());
}

}  // namespace tributary::kernels
