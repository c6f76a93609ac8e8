#pragma once
// Inputs on which rounded sums go wrong.
#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::kernels::test {

enum class Family : std::uint8_t {
  ordinary,   // values of ordinary size
  gaussian,   // normally distributed
  any,        // a third special values, a third of ordinary size, the rest any bits
  far_apart,  // finite, any exponent
  cancels,    // each second input is the negative of the input before it, except for its last bit
  hides,      // very large, small, and the negative of the very large
  absorbs,    // ones beside a value whose last bit is 2, as 2^24 of float32
  sweep,      // every exponent in turn; neighbouring inputs lie half a range apart
  tiny,       // subnormal
  zeros,      // zeros of both signs
};
inline constexpr Family kFamilies[] = {Family::ordinary, Family::gaussian, Family::any,     Family::far_apart,
                                       Family::cancels,  Family::hides,    Family::absorbs, Family::sweep,
                                       Family::tiny,     Family::zeros};
[[nodiscard]] std::string_view to_string(Family family) noexcept;

inline constexpr DType kFloats[] = {DType::float16, DType::bfloat16,    DType::float32,
                                    DType::float64, DType::float8_e4m3, DType::float8_e5m2};

/// Returns arrays of `count` elements, one for each input.
[[nodiscard]] std::vector<std::vector<std::byte>> exact_inputs(DType dtype, Family family, std::size_t inputs,
                                                               std::size_t count, std::uint64_t seed);

/// Returns a form of one element and one rank: number * 2^exponent, in `width` bytes. Marks of 0 are left out.
[[nodiscard]] std::vector<std::byte> form_of_one(int exponent, unsigned width, std::int8_t number,
                                                 std::uint8_t marks = 0);

}  // namespace tributary::kernels::test
