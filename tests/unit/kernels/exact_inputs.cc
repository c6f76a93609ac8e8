#include "tests/unit/kernels/exact_inputs.h"

#include <bit>
#include <cstring>

#include "tests/unit/kernels/values.h"
#include "tributary/kernels/convert.h"
#include "tributary/protocol/sum_form.h"

namespace tributary::kernels::test {
namespace {

struct FloatBits {
  unsigned exponent_bits, mantissa_bits;
};

FloatBits float_bits_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {5, 10};
    case DType::bfloat16:
      return {8, 7};
    case DType::float32:
      return {8, 23};
    case DType::float8_e4m3:
      return {4, 3};
    case DType::float8_e5m2:
      return {5, 2};
    default:
      return {11, 52};
  }
}

class Maker {
 public:
  Maker(DType dtype, Family family, std::uint64_t seed) : dtype_(dtype), family_(family), random_(seed) {}

  std::vector<std::vector<std::byte>> all(std::size_t inputs, std::size_t count) {
    std::vector<std::vector<std::byte>> arrays;
    for (std::size_t k = 0; k < inputs; ++k) {
      if (family_ == Family::ordinary || family_ == Family::any) {
        arrays.push_back(family_ == Family::any ? values(dtype_, count, random_)
                                                : plain_values(dtype_, count, random_));
        continue;
      }
      std::vector<std::byte> array(count * size_of(dtype_));
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t before = k == 0 ? 0 : bits_at(dtype_, arrays.back().data(), i);
        const std::uint64_t bits = one(k, i, before);
        std::memcpy(array.data() + i * size_of(dtype_), &bits, size_of(dtype_));
      }
      arrays.push_back(std::move(array));
    }
    return arrays;
  }

 private:
  [[nodiscard]] std::uint64_t sign() const {
    return std::uint64_t{1} << (layout_.exponent_bits + layout_.mantissa_bits);
  }
  std::uint64_t fraction() { return random_() & ((std::uint64_t{1} << layout_.mantissa_bits) - 1); }
  std::uint64_t either_sign() { return random_() % 2 == 0 ? 0 : sign(); }
  std::uint64_t finite() {
    const std::uint64_t exponents = (std::uint64_t{1} << layout_.exponent_bits) - 1;
    return either_sign() | random_() % exponents << layout_.mantissa_bits | fraction();
  }

  std::uint64_t gaussian() {
    const double value = normal_(random_);
    if (dtype_ == DType::float64) return std::bit_cast<std::uint64_t>(value);
    const auto single = static_cast<float>(value);
    std::uint64_t bits = 0;
    if (dtype_ == DType::float32) return std::bit_cast<std::uint32_t>(single);
    convert(DType::float32, dtype_, &single, &bits, 1);
    return bits;
  }

  /// Returns a power of two.
  [[nodiscard]] std::uint64_t power(unsigned exponent) const {
    return (((std::uint64_t{1} << (layout_.exponent_bits - 1)) - 1) + exponent) << layout_.mantissa_bits;
  }

  std::uint64_t one(std::size_t input, std::size_t element, std::uint64_t before) {
    const std::uint64_t exponents = (std::uint64_t{1} << layout_.exponent_bits) - 1;
    switch (family_) {
      case Family::gaussian:
        return gaussian();
      case Family::absorbs:
        return input == 0 ? power(layout_.mantissa_bits + 1) : power(0);
      case Family::sweep:
        return either_sign() | (element + input * (exponents / 2)) % exponents << layout_.mantissa_bits | fraction();
      case Family::cancels:
        return input % 2 == 0 ? finite() : (before ^ sign()) ^ (random_() % 2);
      case Family::hides: {
        const std::uint64_t large = ((std::uint64_t{1} << layout_.exponent_bits) - 3) << layout_.mantissa_bits;
        return input % 3 == 0 ? large : input % 3 == 1 ? power(0) : large | sign();
      }
      case Family::tiny:
        return either_sign() | fraction();
      case Family::zeros:
        return random_() % 8 == 0 ? 0 : sign();
      default:
        return finite();
    }
  }

  DType dtype_;
  Family family_;
  FloatBits layout_ = float_bits_of(dtype_);
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

}  // namespace

std::string_view to_string(Family family) noexcept {
  constexpr std::string_view names[] = {"ordinary", "gaussian", "any",   "far_apart", "cancels",
                                        "hides",    "absorbs",  "sweep", "tiny",      "zeros"};
  return names[static_cast<std::size_t>(family)];
}

std::vector<std::vector<std::byte>> exact_inputs(DType dtype, Family family, std::size_t inputs, std::size_t count,
                                                 std::uint64_t seed) {
  return Maker(dtype, family, seed).all(inputs, count);
}

std::vector<std::byte> form_of_one(int exponent, unsigned width, std::int8_t number, std::uint8_t marks) {
  constexpr std::size_t kHeads = kFormHeadBytes + kFormBlockHeadBytes;
  std::vector<std::byte> form(kHeads);
  form[0] = form[4] = std::byte{1};
  const auto stored = static_cast<std::int16_t>(exponent);
  std::memcpy(&form[8], &stored, sizeof(stored));
  form[10] = static_cast<std::byte>(width);
  form[11] = static_cast<std::byte>(width >> 8U | (marks != 0 ? 0x80U : 0U));
  if (marks != 0) form.push_back(static_cast<std::byte>(marks));
  form.push_back(static_cast<std::byte>(number));
  form.resize(form.size() + width - 1, number < 0 ? std::byte{0xFF} : std::byte{0});
  return form;
}

}  // namespace tributary::kernels::test
