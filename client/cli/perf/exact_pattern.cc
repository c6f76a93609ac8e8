#include "client/cli/perf/exact_pattern.h"

#include <cstring>

#include "client/cli/oracle/float_bits.h"
#include "client/cli/perf/pattern.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/protocol/numerics.h"

namespace tributary::cli {
namespace {

/// How far from 1 the exponents of a type's values lie: mostly, and in each 64th element.
struct Spread {
  std::uint32_t near, far;
};

constexpr std::size_t kFarEach = 64;

Spread spread_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
      return {5, 9};
    case DType::bfloat16:
    case DType::float32:
      return {12, 60};
    case DType::float8_e4m3:
      return {2, 4};
    case DType::float8_e5m2:
      return {3, 8};
    default:
      return {20, 300};
  }
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
  const Spread spread = spread_of(dtype);
  const std::uint64_t bias = layout.exponents() >> 1U;
  std::vector<std::byte> bytes(kPatternPeriod * size_of(dtype));
  for (std::size_t i = 0; i < kPatternPeriod; ++i) {
    const std::uint64_t random = mixed((std::uint64_t{rank} + 1) * 0x9E3779B97F4A7C15ULL + i);
    const std::uint64_t reach = i % kFarEach == 0 ? spread.far : spread.near;
    const std::uint64_t exponent = bias - reach + (random >> 53U) % (2 * reach + 1);
    const std::uint64_t fraction = random & layout.fractions();
    const std::uint64_t sign = (random >> 52U & 1U) != 0 ? layout.sign() : 0;
    const std::uint64_t bits = sign | exponent << layout.fraction_bits | fraction;
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
