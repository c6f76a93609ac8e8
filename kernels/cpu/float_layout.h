#pragma once
// The bits of float32 and float64. A finite value is a mantissa of whole bits times 2^(field - kBias), with a field of
// at least 1.
#include <algorithm>
#include <bit>
#include <cstdint>

namespace tributary::kernels {

template <class Float>
struct Layout;
template <>
struct Layout<float> {
  using Bits = std::uint32_t;
  static constexpr int kFraction = 23, kBias = 150, kField = 0xFF;
};
template <>
struct Layout<double> {
  using Bits = std::uint64_t;
  static constexpr int kFraction = 52, kBias = 1075, kField = 0x7FF;
};

template <class Float>
struct FloatBits {
  using L = Layout<Float>;
  explicit FloatBits(Float value) noexcept : bits(std::bit_cast<typename L::Bits>(value)) {}
  [[nodiscard]] int stored_field() const noexcept { return static_cast<int>(bits >> L::kFraction) & L::kField; }
  [[nodiscard]] int field() const noexcept { return std::max(stored_field(), 1); }
  [[nodiscard]] L::Bits fraction() const noexcept { return bits & ((typename L::Bits{1} << L::kFraction) - 1); }
  [[nodiscard]] L::Bits mantissa() const noexcept {
    return fraction() | (stored_field() == 0 ? 0 : typename L::Bits{1} << L::kFraction);
  }
  [[nodiscard]] L::Bits magnitude() const noexcept { return bits & (~typename L::Bits{0} >> 1U); }
  [[nodiscard]] bool negative() const noexcept { return bits >> (sizeof(bits) * 8 - 1) != 0; }
  [[nodiscard]] bool finite() const noexcept { return stored_field() != L::kField; }
  /// Returns whether the value is finite and not zero.
  [[nodiscard]] bool counts() const noexcept { return finite() && magnitude() != 0; }
  L::Bits bits;
};

}  // namespace tributary::kernels
