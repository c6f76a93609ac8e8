#pragma once
// The ranks' inputs of `tributary verify-bits`. They are functions of seed, rank and place, so that every rank knows the
// inputs of all ranks.
#include <array>
#include <cstdint>
#include <string_view>

#include "client/cli/oracle/float_bits.h"

namespace tributary::cli {

enum class BitFamily : std::uint8_t {
  gaussian,
  far_apart,   // 1e30, 1, -1e30, or what is as far apart in the type
  denormals,   // below the smallest normal value, of both signs
  ones,        // many ones beside a value whose last bit is 2
  cancelling,  // pairs of opposite signs that differ in the last bit
  exponents,   // every exponent of the type
  specials,    // NaN, infinities, zeros of both signs
};
inline constexpr std::array kBitFamilies{BitFamily::gaussian, BitFamily::far_apart,  BitFamily::denormals,
                                         BitFamily::ones,     BitFamily::cancelling, BitFamily::exponents,
                                         BitFamily::specials};
[[nodiscard]] std::string_view to_string(BitFamily family) noexcept;

/// Returns the bits of element `i` of a rank's input.
[[nodiscard]] std::uint64_t bits_of_input(FloatBits format, BitFamily family, std::uint64_t seed, std::uint32_t rank,
                                          std::uint64_t i) noexcept;

}  // namespace tributary::cli
