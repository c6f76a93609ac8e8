#include "client/cli/perf/exact_pattern.h"

#include <cstring>

#include "client/cli/perf/pattern.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/protocol/numerics.h"

namespace tributary::cli {
namespace {

/// The bits of a type, and how far from 1 its values' exponents lie: mostly, and in each 64th element.
struct FloatBits {
  unsigned exponent_bits, mantissa_bits;
  std::uint32_t near, far;
  [[nodiscard]] std::uint64_t sign() const noexcept { return 1ULL << (exponent_bits + mantissa_bits); }
};

constexpr std::size_t kFarEach = 64;

FloatBits float_bits_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
      return {5, 10, 5, 9};
    case DType::bfloat16:
      return {8, 7, 12, 60};
    case DType::float32:
      return {8, 23, 12, 60};
    case DType::float8_e4m3:
      return {4, 3, 2, 4};
    case DType::float8_e5m2:
      return {5, 2, 3, 8};
    default:
      return {11, 52, 20, 300};
  }
}

std::uint64_t mixed(std::uint64_t x) noexcept {  // splitmix64's finalizer
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

std::uint64_t bits_of(DType dtype, const std::byte* at) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, size_of(dtype));
  return bits;
}

}  // namespace

bool has_exact_pattern(DType dtype, ReduceOp op) noexcept {
  return is_float(dtype) && (op == ReduceOp::sum || op == ReduceOp::avg);
}

std::vector<std::byte> exact_contribution(DType dtype, std::uint32_t rank) {
  const FloatBits layout = float_bits_of(dtype);
  const std::uint64_t bias = (1ULL << (layout.exponent_bits - 1)) - 1;
  std::vector<std::byte> bytes(kPatternPeriod * size_of(dtype));
  for (std::size_t i = 0; i < kPatternPeriod; ++i) {
    const std::uint64_t random = mixed((std::uint64_t{rank} + 1) * 0x9E3779B97F4A7C15ULL + i);
    const std::uint64_t reach = i % kFarEach == 0 ? layout.far : layout.near;
    const std::uint64_t exponent = bias - reach + (random >> 53U) % (2 * reach + 1);
    const std::uint64_t fraction = random & ((1ULL << layout.mantissa_bits) - 1);
    const std::uint64_t sign = (random >> 52U & 1U) != 0 ? layout.sign() : 0;
    const std::uint64_t bits = sign | exponent << layout.mantissa_bits | fraction;
    std::memcpy(bytes.data() + i * size_of(dtype), &bits, size_of(dtype));
  }
  return bytes;
}

std::vector<std::byte> exact_reduced(DType dtype, ReduceOp op, std::uint32_t ranks) {
  std::vector<std::vector<std::byte>> contributions;
  std::vector<const void*> inputs;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) contributions.push_back(exact_contribution(dtype, rank));
  for (const auto& contribution : contributions) inputs.push_back(contribution.data());
  std::vector<std::byte> result(kPatternPeriod * size_of(dtype));
  kernels::reference::exact_sum(dtype, inputs, result.data(), 0, kPatternPeriod, op == ReduceOp::avg ? ranks : 1);
  return result;
}

std::uint64_t units_between(DType dtype, const std::byte* a, const std::byte* b) noexcept {
  const FloatBits layout = float_bits_of(dtype);
  const std::uint64_t magnitude_mask = layout.sign() - 1;
  const auto place = [&](std::uint64_t bits) {  // consecutive values have consecutive places
    const auto magnitude = static_cast<std::int64_t>(bits & magnitude_mask);
    return (bits & layout.sign()) != 0 ? -magnitude : magnitude;
  };
  const std::uint64_t first = bits_of(dtype, a), second = bits_of(dtype, b);
  const std::int64_t distance = place(first) - place(second);
  return static_cast<std::uint64_t>(distance < 0 ? -distance : distance);
}

}  // namespace tributary::cli
