#pragma once
// An operation that only ranks of several hosts have between their hosts.
#include "tributary/protocol/types.h"

namespace tributary {

/// A sum of floats that travels scaled as an average does, and that nobody divides: hosts with different numbers of
/// ranks have no common average, so each divides the scaled sum of all at its end. Wire format; not in tributary.h.
inline constexpr ReduceOp kScaledSum{5};

/// The operations that a frame may carry: those of tributary.h, and kScaledSum.
[[nodiscard]] constexpr bool is_wire_op(ReduceOp op) noexcept {
  return static_cast<std::uint8_t>(op) < kReduceOpCount || op == kScaledSum;
}

}  // namespace tributary
