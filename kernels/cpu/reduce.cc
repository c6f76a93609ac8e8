#include "tributary/kernels/reduce.h"

#include <algorithm>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/weighted_sum.h"
#include "kernels/reference/reduce.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels {
namespace {

/// The values that are chosen once for this machine.
struct Choice {
  const ReduceTable& table;
  std::size_t ahead_bytes;   // larger totals of inputs and result do not stay in a core's own caches
  std::size_t stream_bytes;  // with a larger total of inputs and result, the result goes past the caches
};

const Choice& choice() noexcept {
  static const Choice made = {
      .table = reduce_table(active_target()), .ahead_bytes = cache_sizes().second, .stream_bytes = stream_bytes()};
  return made;
}

ReduceArgs args_of(DType dtype, std::span<const void* const> inputs, void* out, std::size_t count) noexcept {
  const Choice& chosen = choice();
  const std::size_t bytes = count * size_of(dtype) * (inputs.size() + 1);
  ReduceArgs args{.inputs = inputs.data(),
                  .inputs_count = inputs.size(),
                  .out = out,
                  .count = count,
                  .divisor = 1,
                  .stream = false,
                  .ahead = bytes > chosen.ahead_bytes};
  // A result in place is never streamed: its cache lines have just been read.
  if (bytes > chosen.stream_bytes) args.stream = std::ranges::find(inputs, out) == inputs.end();
  return args;
}

}  // namespace

void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
            std::uint32_t divisor) noexcept {
  TRIBUTARY_ASSERT(!inputs.empty() && inputs.size() <= kReduceInputsMax && divisor != 0,
                   "{} inputs of at most {}, divided by {}", inputs.size(), kReduceInputsMax, divisor);
  TRIBUTARY_ASSERT(is_defined(op, dtype), "type {} has no operator {}", dtype, op);
  if (count == 0) return;
  if (divisor == 1 && op == ReduceOp::avg) op = ReduceOp::sum;  // the same bits, without the division
  ReduceArgs args = args_of(dtype, inputs, out, count);
  if (op == ReduceOp::avg) args.divisor = divisor;
  choice().table.functions[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)](args);
}

void weighted_sum(DType dtype, std::span<const void* const> inputs, std::span<const double> weights, double quotient,
                  void* out, std::size_t count) noexcept {
  TRIBUTARY_ASSERT(
      !inputs.empty() && inputs.size() <= kReduceInputsMax && weights.size() == inputs.size() && quotient > 0,
      "{} inputs of at most {}, {} weights, divided by {}", inputs.size(), kReduceInputsMax, weights.size(), quotient);
  if (count == 0) return;
  ReduceArgs args = args_of(dtype, inputs, out, count);
  args.weights = weights.data();
  args.quotient = quotient;
  args.largest = reference::largest_of(dtype);
  choice().table.weighted[static_cast<std::size_t>(dtype)](args);
}

}  // namespace tributary::kernels
