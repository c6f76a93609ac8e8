#include "tributary/kernels/exact.h"

#include <bit>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/exact_table.h"
#include "kernels/reference/exact_sum.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels {
namespace {

template <DType kDType>
void redo(const ExactArgs& args, std::size_t first, std::size_t end) noexcept {
  reference::exact_sum(kDType, {args.inputs, args.inputs_count}, args.out, first, end, args.divisor);
}

constexpr ExactArgs::Redo* redo_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
      return redo<DType::float16>;
    case DType::bfloat16:
      return redo<DType::bfloat16>;
    case DType::float32:
      return redo<DType::float32>;
    case DType::float64:
      return redo<DType::float64>;
    case DType::float8_e4m3:
      return redo<DType::float8_e4m3>;
    case DType::float8_e5m2:
      return redo<DType::float8_e5m2>;
    default:
      return nullptr;
  }
}

}  // namespace

void exact_sum_by(const ExactTable& table, DType dtype, std::span<const void* const> inputs, void* out,
                  std::size_t count, std::uint32_t divisor, bool ahead) noexcept {
  TRIBUTARY_ASSERT(!inputs.empty() && inputs.size() <= kExactInputsMax && divisor != 0 && is_float(dtype),
                   "an exact sum of {} inputs of type {}, divided by {}", inputs.size(), dtype, divisor);
  if (count == 0) return;
  const ExactFunction function = table.functions[static_cast<std::size_t>(dtype)];
  if (function == nullptr || divisor > kExactDivisorMax)
    return reference::exact_sum(dtype, inputs, out, 0, count, divisor);
  function({.inputs = inputs.data(),
            .inputs_count = inputs.size(),
            .inputs_log2 = static_cast<int>(std::bit_width(inputs.size() - 1)),
            .out = out,
            .count = count,
            .divisor = divisor,
            .reciprocal = 1.0 / static_cast<double>(divisor),
            .ahead = ahead,
            .redo = redo_of(dtype)});
}

void exact_sum(DType dtype, std::span<const void* const> inputs, void* out, std::size_t count,
               std::uint32_t divisor) noexcept {
  static const ExactTable& table = exact_table(active_target());
  static const std::size_t ahead_bytes = cache_sizes().second;
  exact_sum_by(table, dtype, inputs, out, count, divisor, count * size_of(dtype) * (inputs.size() + 1) > ahead_bytes);
}

}  // namespace tributary::kernels
