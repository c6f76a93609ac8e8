#pragma once
// How sums of floats are rounded. docs/numerics.md says what each mode promises.
#include <cstdint>
#include <optional>
#include <string_view>

#include "tributary/protocol/types.h"

namespace tributary {

enum class Numerics : std::uint8_t {
  fast,   // each sum is rounded where it is made, so its bits depend on the path
  exact,  // the exact sum of all ranks' values, rounded once
};
inline constexpr std::uint8_t kNumericsCount = 2;

[[nodiscard]] constexpr std::string_view to_string(Numerics numerics) noexcept {
  return numerics == Numerics::exact ? "exact" : "fast";
}
[[nodiscard]] constexpr std::optional<Numerics> numerics_from_string(std::string_view name) noexcept {
  if (name == "fast") return Numerics::fast;
  // Wide partial sums that are rounded once would take more bytes than the forms of exact ones (docs/numerics.md).
  if (name == "exact" || name == "wide") return Numerics::exact;
  return std::nullopt;
}

/// The sum and the average of a communicator with exact numerics. Their bits come from one sum of the values of all
/// ranks, so ranks send and get no partial result of them. Their numbers are part of the wire format, and tributary.h
/// does not have them.
inline constexpr ReduceOp kExactSum{kInternalReduceOpMin + 1};
inline constexpr ReduceOp kExactAverage{kInternalReduceOpMin + 2};
/// The same between hosts: every leader contributes a form (sum_form.h) with the sum of its host's ranks.
inline constexpr ReduceOp kExactSumOfHosts{kInternalReduceOpMin + 3};
inline constexpr ReduceOp kExactAverageOfHosts{kInternalReduceOpMin + 4};

[[nodiscard]] constexpr bool is_exact(ReduceOp op) noexcept {
  return kExactSum <= op && op <= kExactAverageOfHosts;
}
[[nodiscard]] constexpr bool is_exact_of_hosts(ReduceOp op) noexcept {
  return op == kExactSumOfHosts || op == kExactAverageOfHosts;
}

/// The product of floats of a communicator with exact numerics. Products have no forms, so no partial product travels:
/// one process has the values of all ranks, and multiplies them in the order of the ranks.
inline constexpr ReduceOp kOrderedProduct{kInternalReduceOpMin + 5};

/// True for an operator whose result one process makes from the values of all ranks, where no forms travel.
[[nodiscard]] constexpr bool takes_all_inputs(ReduceOp op) noexcept {
  return is_exact(op) || op == kOrderedProduct;
}
/// Returns the operator between hosts for an exact operator of ranks.
[[nodiscard]] constexpr ReduceOp between_hosts(ReduceOp exact) noexcept {
  return exact == kExactAverage ? kExactAverageOfHosts : kExactSumOfHosts;
}

/// True for the types whose sums are rounded.
[[nodiscard]] constexpr bool is_float(DType dtype) noexcept {
  return accumulates_wider(dtype) || dtype == DType::float32 || dtype == DType::float64;
}

/// True if the operator of tributary.h has a meaning for this type: floats have no bits and no truth values.
[[nodiscard]] constexpr bool is_defined(ReduceOp op, DType dtype) noexcept {
  if (op <= ReduceOp::avg) return true;
  return op <= ReduceOp::lxor && !is_float(dtype);
}

/// Returns the operator of a reduction with these numerics. Sums of integers are exact already, and a minimum or a
/// maximum is one of its inputs.
[[nodiscard]] constexpr ReduceOp with_numerics(ReduceOp op, DType dtype, Numerics numerics) noexcept {
  if (numerics == Numerics::fast || !is_float(dtype)) return op;
  switch (op) {
    case ReduceOp::sum:
      return kExactSum;
    case ReduceOp::avg:
      return kExactAverage;
    case ReduceOp::prod:
      return kOrderedProduct;
    default:
      return op;
  }
}

}  // namespace tributary
