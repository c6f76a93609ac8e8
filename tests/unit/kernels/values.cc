#include "tests/unit/kernels/values.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace tributary::kernels::test {
namespace {

constexpr std::size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xA5};

struct Layout {
  int exponent_bits;  // 0: an integer
  int mantissa_bits;
  bool has_infinity;
};

Layout layout_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {5, 10, true};
    case DType::bfloat16:
      return {8, 7, true};
    case DType::float32:
      return {8, 23, true};
    case DType::float64:
      return {11, 52, true};
    case DType::float8_e4m3:
      return {4, 3, false};
    case DType::float8_e5m2:
      return {5, 2, true};
    default:
      return {0, 0, false};
  }
}

std::uint64_t ones(int bits) {
  return bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::uint64_t special_float(Layout layout, std::uint64_t pick) {
  const std::uint64_t unit = std::uint64_t{1} << layout.mantissa_bits;
  const std::uint64_t exponent_mask = ones(layout.exponent_bits) * unit;
  const std::uint64_t one = ones(layout.exponent_bits - 1) * unit;
  const std::array magnitudes{std::uint64_t{0},
                              std::uint64_t{1},
                              unit - 1,
                              unit,
                              unit + 1,  // zero, the least and greatest subnormals, the least normals
                              exponent_mask - 1,
                              exponent_mask - unit,
                              exponent_mask,
                              exponent_mask + 1,  // the largest, infinity, a signalling NaN
                              exponent_mask + unit / 2,
                              exponent_mask + unit - 1,  // quiet NaN
                              one,
                              one + 1,
                              one - 1,
                              one + unit};  // about 1 and 2
  const std::uint64_t sign = (pick & 1) << (layout.exponent_bits + layout.mantissa_bits);
  return sign | magnitudes[(pick >> 1) % magnitudes.size()];
}

std::uint64_t ordinary_float(Layout layout, std::uint64_t random) {
  // Draw exponents within three of the exponent of 1, with any mantissa and sign.
  const std::uint64_t exponent = ones(layout.exponent_bits - 1) - 3 + (random >> 58) % 6;
  const std::uint64_t sign = (random >> 57 & 1) << (layout.exponent_bits + layout.mantissa_bits);
  return sign | exponent << layout.mantissa_bits | (random & ones(layout.mantissa_bits));
}

std::uint64_t special_integer(int bits, std::uint64_t pick) {
  const std::array specials{std::uint64_t{0},   std::uint64_t{1}, ones(bits),     ones(bits - 1), ones(bits - 1) + 1,
                            ones(bits - 1) + 2, std::uint64_t{2}, ones(bits) - 1, ones(bits / 2), ones(bits / 2) + 1};
  return specials[pick % specials.size()];
}

std::uint64_t draw(DType dtype, int kind, std::mt19937_64& random) {
  const Layout layout = layout_of(dtype);
  const int bits = 8 * static_cast<int>(size_of(dtype));
  const std::uint64_t number = random();
  if (kind == 0) return layout.exponent_bits > 0 ? special_float(layout, number) : special_integer(bits, number);
  if (kind == 1) return layout.exponent_bits > 0 ? ordinary_float(layout, number) : number % 23 - 11;
  return number;
}

std::vector<std::byte> fill(DType dtype, std::size_t count, std::mt19937_64& random, bool specials) {
  const std::size_t size = size_of(dtype);
  std::vector<std::byte> array(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = draw(dtype, specials ? static_cast<int>(random() % 3) : 1, random);
    std::memcpy(array.data() + i * size, &bits, size);  // little-endian: the low bytes
  }
  return array;
}

}  // namespace

std::vector<std::byte> values(DType dtype, std::size_t count, std::mt19937_64& random) {
  return fill(dtype, count, random, true);
}

std::vector<std::byte> plain_values(DType dtype, std::size_t count, std::mt19937_64& random) {
  return fill(dtype, count, random, false);
}

std::uint64_t bits_at(DType dtype, const std::byte* array, std::size_t index) {
  const std::size_t size = size_of(dtype);
  std::uint64_t bits = 0;
  std::memcpy(&bits, array + index * size, size);
  return bits;
}

bool is_nan(DType dtype, std::uint64_t bits) {
  const Layout layout = layout_of(dtype);
  if (layout.exponent_bits == 0) return false;
  const std::uint64_t magnitude = bits & ones(layout.exponent_bits + layout.mantissa_bits);
  const std::uint64_t infinity = ones(layout.exponent_bits) << layout.mantissa_bits;
  return layout.has_infinity ? magnitude > infinity : magnitude == ones(layout.exponent_bits + layout.mantissa_bits);
}

bool is_quiet_nan(DType dtype, std::uint64_t bits) {
  const Layout layout = layout_of(dtype);
  return is_nan(dtype, bits) && (!layout.has_infinity || (bits >> (layout.mantissa_bits - 1) & 1) != 0);
}

std::string difference(DType dtype, const std::byte* expected, const std::byte* actual, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t want = bits_at(dtype, expected, i);
    const std::uint64_t got = bits_at(dtype, actual, i);
    if (want == got || (is_nan(dtype, want) && is_quiet_nan(dtype, got))) continue;
    return std::string(to_string(dtype)) + " element " + std::to_string(i) + " of " + std::to_string(count) +
           ": expected bits " + std::to_string(want) + ", got " + std::to_string(got);
  }
  return {};
}

GuardedArray::GuardedArray(std::size_t bytes, std::size_t misalignment)
    : storage_(bytes + 2 * kGuardBytes + 64 + misalignment, kGuard), bytes_(bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuardBytes;
  start_ = kGuardBytes + (64 - address % 64) % 64 + misalignment;
}

void GuardedArray::assign(const std::vector<std::byte>& content) {
  std::ranges::copy(content, data());
}

bool GuardedArray::guards_intact() const {
  const auto guard = [](std::byte byte) { return byte == kGuard; };
  const auto end = static_cast<std::ptrdiff_t>(start_ + bytes_);
  return std::all_of(storage_.begin(), storage_.begin() + static_cast<std::ptrdiff_t>(start_), guard) &&
         std::all_of(storage_.begin() + end, storage_.end(), guard);
}

}  // namespace tributary::kernels::test
