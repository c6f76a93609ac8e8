#pragma once
// Sums by MPFR, whose mpfr_sum() is rounded correctly (V. Lefevre, Correctly rounded arbitrary-precision floating-point
// summation, ARITH 2016).
#include <mpfr.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tributary/protocol/types.h"

namespace tributary::kernels::test {

/// The bits of a type, and its exponents as MPFR counts them: a number is a fraction from 1/2 to 1, times 2^exponent.
struct MpfrFormat {
  mpfr_prec_t bits;
  mpfr_exp_t least, most;
};

/// Returns element `index` of an array.
[[nodiscard]] double value_at(DType dtype, const std::byte* array, std::size_t index);

/// The sums of as many values of one type as the constructor gets.
class MpfrOracle {
 public:
  MpfrOracle(DType dtype, std::size_t inputs);
  MpfrOracle(const MpfrOracle&) = delete;
  MpfrOracle& operator=(const MpfrOracle&) = delete;
  ~MpfrOracle();
  /// Returns the sum divided by `divisor`, rounded once to the type.
  [[nodiscard]] double sum(const std::vector<double>& values, std::uint32_t divisor);

 private:
  using Number = std::remove_all_extents_t<mpfr_t>;
  DType dtype_;
  MpfrFormat format_;
  std::vector<Number> values_;
  std::vector<mpfr_ptr> pointers_;
  Number exact_{}, rounded_{};
};

/// Returns an empty text if `sums` has the correctly rounded sums of all inputs, divided; else the first wrong element.
[[nodiscard]] std::string wrong_sum(DType dtype, const std::vector<std::vector<std::byte>>& inputs,
                                    const std::vector<std::byte>& sums, std::uint32_t divisor);

}  // namespace tributary::kernels::test
