#include "tributary/kernels/reduce.h"

#include <algorithm>
#include <cassert>

#include "cpu/cache.h"
#include "cpu/kernel_table.h"

namespace tributary::kernels {
namespace {

/// Whether the result goes past the caches. It does once inputs and result fill more than half of the last cache, which
/// other cores use as well: they will not stay there, and a store that allocates a line has to read it first, a third
/// of all traffic at two inputs. Smaller results stay in cache for whoever sends them on, although streaming alone
/// would be faster from about 1 MiB. In place it never does: the result's lines have just been read.
bool should_stream(std::span<const void* const> inputs, const void* out, std::size_t bytes) noexcept {
  return bytes * (inputs.size() + 1) > cache_sizes().last / 2 && std::ranges::find(inputs, out) == inputs.end();
}

const ReduceTable& active_table() noexcept {
  static const ReduceTable& table = reduce_table(active_target());
  return table;
}

}  // namespace

void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* out, std::size_t count,
            std::uint32_t divisor) noexcept {
  assert(!inputs.empty() && inputs.size() <= kReduceInputsMax && divisor != 0);
  if (count == 0) return;
  if (divisor == 1 && op == ReduceOp::avg) op = ReduceOp::sum;  // the same bits, without the division
  const ReduceArgs args{.inputs = inputs.data(),
                        .inputs_count = inputs.size(),
                        .out = out,
                        .count = count,
                        .divisor = op == ReduceOp::avg ? divisor : 1,
                        .stream = should_stream(inputs, out, count * size_of(dtype)),
                        .ahead = count * size_of(dtype) * (inputs.size() + 1) > cache_sizes().second};
  active_table().functions[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)](args);
}

}  // namespace tributary::kernels
