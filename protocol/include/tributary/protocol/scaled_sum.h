#pragma once
// The reduction operator that only operations between hosts use.
#include "tributary/protocol/numerics.h"
#include "tributary/protocol/types.h"

namespace tributary {

/// A sum of floats that travels scaled, as an average does. No aggregator divides it: hosts with different numbers of
/// ranks have no common average, so each host divides the scaled sum at the end. kScaledSum's number is part of the
/// wire format, and tributary.h does not have it.
inline constexpr ReduceOp kScaledSum{kInternalReduceOpMin};

/// True for an operator that a frame may carry with this type: the operators that tributary.h has for it, kScaledSum,
/// and, for floats, the operators of exact numerics.
[[nodiscard]] constexpr bool is_wire_op(ReduceOp op, DType dtype) noexcept {
  return is_defined(op, dtype) || op == kScaledSum || (takes_all_inputs(op) && is_float(dtype));
}

}  // namespace tributary
