#include "tributary/kernels/reduce_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "kernels/cpu/weighted_sum.h"
#include "tributary/kernels/exact.h"
#include "tributary/kernels/ordered_product.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/scaled_sum.h"

namespace tributary::kernels {
namespace {

/// Returns the number of further bits by which the accumulator is scaled down. If the accumulator is not wider than the
/// element, rounding could lift a sum of values near the largest value beyond it. One bit makes room, and the division
/// gives this bit back.
int headroom_of(DType dtype) noexcept {
  return accumulates_wider(dtype) ? 0 : 1;
}

void average(DType dtype, std::span<const void* const> inputs, void* out, std::size_t count,
             const Step& step) noexcept {
  const auto ranks_of = [&](std::size_t input) { return step.ranks.empty() ? 1U : step.ranks[input]; };
  std::uint64_t ranks = step.ranks_in_all;
  for (std::size_t i = 0; step.ranks_in_all == 0 && i < inputs.size(); ++i) ranks += ranks_of(i);
  const int scale = scale_of_ranks(ranks);
  const int down = scale + headroom_of(dtype);
  std::array<double, kReduceInputsMax> weights;
  for (std::size_t i = 0; i < inputs.size(); ++i) weights[i] = std::ldexp(1.0, scale_of_ranks(ranks_of(i)) - down);
  if (step.begun) weights[0] = 1;
  if (step.unfinished) return weighted_sum(dtype, inputs, {weights.data(), inputs.size()}, 1, out, count);
  const double quotient =
      std::ldexp(step.divisor == 1 ? std::ldexp(1.0, scale) : static_cast<double>(step.divisor), -down);
  weighted_sum(dtype, inputs, {weights.data(), inputs.size()}, quotient, out, count);
}

}  // namespace

void reduce_step(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
                 const Step& step) noexcept {
  TRIBUTARY_ASSERT(step.ranks.empty() || step.ranks.size() == inputs.size(), "{} inputs of {} groups of ranks",
                   inputs.size(), step.ranks.size());
  TRIBUTARY_ASSERT(std::ranges::none_of(step.ranks, [](std::uint32_t ranks) { return ranks == 0; }),
                   "one of {} inputs is the sum of 0 ranks", inputs.size());
  TRIBUTARY_ASSERT((!step.begun && !step.unfinished) || (step.ranks_in_all != 0 && !accumulates_wider(dtype)),
                   "a part of a sum of {} ranks in type {}", step.ranks_in_all, dtype);
  if (takes_all_inputs(op)) {
    TRIBUTARY_ASSERT(!step.begun && !step.unfinished && step.divisor == inputs.size(),
                     "an exact sum or an ordered product of {} ranks gets {} inputs", step.divisor, inputs.size());
    if (op == kOrderedProduct) return ordered_product(dtype, inputs, out, count);
    return exact_sum(dtype, inputs, out, count, op == kExactAverage ? step.divisor : 1);
  }
  const bool scaled = op == kScaledSum;
  if ((op == ReduceOp::avg || scaled) && averages_in_steps(dtype)) {
    Step undivided = step;
    if (scaled) undivided.divisor = 1;
    return average(dtype, inputs, out, count, undivided);
  }
  reduce(dtype, scaled ? ReduceOp::sum : op, inputs, out, count, step.unfinished ? 1 : step.divisor);
}

void rescale(DType dtype, const void* in, void* out, std::size_t count, std::uint32_t numerator,
             std::uint32_t denominator) noexcept {
  TRIBUTARY_ASSERT(averages_in_steps(dtype) && numerator != 0 && denominator != 0, "type {} is scaled by {} / {}",
                   dtype, numerator, denominator);
  const int scale = scale_of_ranks(std::max(numerator, denominator)) + headroom_of(dtype);
  const std::array<const void*, 1> inputs{in};
  const std::array<double, 1> weights{std::ldexp(static_cast<double>(numerator), -scale)};
  weighted_sum(dtype, inputs, weights, std::ldexp(static_cast<double>(denominator), -scale), out, count);
}

}  // namespace tributary::kernels
