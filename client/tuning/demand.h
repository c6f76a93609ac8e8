#pragma once
// The demand of an algorithm between the ranks: its messages, and the bytes that it moves and reduces (cost_model.h has
// the table of these formulas). Times and rates are the cost model's business.
#include "client/schedule/schedule.h"
#include "tributary/protocol/collective.h"

namespace tributary::tuning {

/// The cost of an algorithm, for the busiest rank and for all ranks together.
struct Demand {
  double rounds = 0;
  double bytes = 0;
  double slowdown = 1;  // factor on the transfer
  double messages = 0;  // messages of all ranks
  double all_bytes = 0;
  double reduced = 0;      // bytes that the busiest rank reduces
  double all_reduced = 0;  // bytes that all ranks reduce
  double copied = 0;       // bytes that a rank copies before its first send
};

/// Returns the demand of `algorithm`, which the collective must have, for a vector of `bytes`.
[[nodiscard]] Demand demand(Collective collective, schedule::Algorithm algorithm, double ranks, double bytes) noexcept;
/// Returns the demand of an exact sum between the ranks (client/schedule/exact.cc); the collective must reduce.
[[nodiscard]] Demand exact_demand(Collective collective, double ranks, double bytes) noexcept;

}  // namespace tributary::tuning
