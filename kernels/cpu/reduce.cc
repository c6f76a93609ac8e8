#include "tributary/kernels/reduce.h"

#include <unistd.h>

#include <algorithm>
#include <cassert>

#include "cpu/kernel_table.h"

namespace tributary::kernels {
namespace {

constexpr std::size_t kLastCacheBytesDefault = std::size_t{16} << 20;

/// Inputs and result of more bytes than this do not stay in the last cache: then storing the result past the caches
/// saves reading its lines first, a third of all traffic at two inputs.
std::size_t stream_bytes_min() noexcept {
  static const std::size_t bytes = [] {
    const long last_cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return last_cache > 0 ? static_cast<std::size_t>(last_cache) : kLastCacheBytesDefault;
  }();
  return bytes;
}

bool should_stream(std::span<const void* const> inputs, const void* out, std::size_t bytes) noexcept {
  // In place, the result's lines have just been read.
  return bytes * (inputs.size() + 1) > stream_bytes_min() && std::ranges::find(inputs, out) == inputs.end();
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
  const ReduceArgs args{.inputs = inputs.data(),
                        .inputs_count = inputs.size(),
                        .out = out,
                        .count = count,
                        .divisor = op == ReduceOp::avg ? divisor : 1,
                        .stream = should_stream(inputs, out, count * size_of(dtype))};
  active_table().functions[static_cast<std::size_t>(dtype)][static_cast<std::size_t>(op)](args);
}

}  // namespace tributary::kernels
