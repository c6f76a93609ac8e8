#pragma once
// The reduction operator that only operations between hosts use.
#include "tributary/protocol/types.h"

namespace tributary {

/// A sum of floats that travels scaled, as an average does. No aggregator divides it: hosts with different numbers of
/// ranks have no common average, so each host divides the scaled sum at the end. kScaledSum's number is part of the
/// wire format, and tributary.h does not have it.
inline constexpr ReduceOp kScaledSum{5};

/// True for the operators that a frame may carry: the operators of tributary.h, and kScaledSum.
[[nodiscard]] constexpr bool is_wire_op(ReduceOp op) noexcept {
  return static_cast<std::uint8_t>(op) < kReduceOpCount || op == kScaledSum;
}

}  // namespace tributary
