#include "client/cli/verify/bit_inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

namespace tributary::cli {
namespace {

/// Cuts a number to the format.
std::uint64_t bits_of(FloatBits format, double value) noexcept {
  if (value == 0) return 0;
  const std::uint64_t sign = std::signbit(value) ? format.sign() : 0;
  const int top = std::ilogb(value);
  const int last = std::max(top - static_cast<int>(format.fraction_bits), format.least());
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::fabs(value), -last));
  const bool normal = mantissa >> format.fraction_bits != 0;
  const auto field = static_cast<std::uint64_t>(last - format.least()) + (normal ? 1 : 0);
  return sign | std::min((field << format.fraction_bits) | (mantissa & format.fractions()), format.largest());
}

/// Adds twelve even distributions, which is near enough to a Gaussian one.
double gaussian(std::uint64_t random) noexcept {
  double sum = -6;
  for (std::uint64_t k = 1; k <= 12; ++k) sum += std::ldexp(static_cast<double>(mixed(random + k) >> 11U), -53);
  return sum;
}

std::uint64_t special(FloatBits format, std::uint64_t random, std::uint64_t i) noexcept {
  const std::uint64_t sign = (random & 1U) != 0 ? format.sign() : 0;
  if (i % 4 == 0) return i % 8 == 0 ? format.sign() : sign;  // every rank has -0; zeros of both signs
  switch (random >> 8U & 15U) {
    case 0:
      return sign | format.nan();
    case 1:
      return format.has_infinity ? format.infinity() | 1U | sign : format.nan();  // a NaN that signals
    case 2:
    case 3:
      return sign | (format.has_infinity ? format.infinity() : format.largest());
    case 4:
      return format.largest();
    default:
      return bits_of(format, gaussian(random));
  }
}

}  // namespace

std::string_view to_string(BitFamily family) noexcept {
  constexpr std::string_view kNames[] = {"gaussian",   "far apart", "denormals", "ones",
                                         "cancelling", "exponents", "specials"};
  return kNames[static_cast<std::size_t>(family)];
}

std::uint64_t bits_of_input(FloatBits format, BitFamily family, std::uint64_t seed, std::uint32_t rank,
                            std::uint64_t i) noexcept {
  const std::uint64_t of_place = mixed(seed * 0x9E3779B97F4A7C15ULL + i);
  const std::uint64_t random = mixed(of_place + (std::uint64_t{rank} + 1) * 0xD1B54A32D192ED03ULL);
  const std::uint64_t sign = (random & 1U) != 0 ? format.sign() : 0;
  switch (family) {
    case BitFamily::gaussian:
      return bits_of(format, gaussian(random));
    case BitFamily::far_apart: {
      const std::uint64_t large = format.largest() - (std::uint64_t{4} << format.fraction_bits);
      const std::uint64_t turn = (rank + of_place) % 3;
      return turn == 0 ? large : turn == 1 ? format.one() : large | format.sign();
    }
    case BitFamily::denormals:
      return sign | (random >> 8U & format.fractions());
    case BitFamily::ones:
      return rank == of_place % 4 ? format.one() + (std::uint64_t{format.fraction_bits + 1} << format.fraction_bits)
                                  : format.one();
    case BitFamily::cancelling: {
      const std::uint64_t pair = mixed(of_place + rank / 2 * 0xD1B54A32D192ED03ULL);
      const std::uint64_t value = bits_of(format, gaussian(pair));
      return rank % 2 == 0 ? value : (value ^ format.sign()) ^ (pair & 1U);
    }
    case BitFamily::exponents: {
      const std::uint64_t most = format.largest() >> format.fraction_bits;
      const std::uint64_t field = (i + std::uint64_t{rank} * 7 + seed) % (most + 1);
      return std::min(field << format.fraction_bits | (random >> 8U & format.fractions()), format.largest()) | sign;
    }
    case BitFamily::specials:
      return special(format, random, i);
  }
  return 0;
}

}  // namespace tributary::cli
