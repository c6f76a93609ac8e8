#include "kernels/cpu/scalar_tables.h"

#include <utility>

#include "kernels/reference/convert.h"
#include "kernels/reference/reduce.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/numerics.h"

namespace tributary::kernels::scalar {
namespace {

template <DType kDType, ReduceOp kOp>
void run(const ReduceArgs& args) noexcept {
  reference::reduce(kDType, kOp, {args.inputs, args.inputs_count}, args.out, args.count, args.divisor);
}

template <DType kDType>
void run_weighted(const ReduceArgs& args) noexcept {
  reference::weighted_sum(kDType, {args.inputs, args.inputs_count}, args.weights, args.quotient, args.out, args.count);
}

template <DType kDType, std::size_t... kOp>
constexpr void fill_row(ReduceFunction (&row)[kReduceOpCount], std::index_sequence<kOp...>) noexcept {
  ((row[kOp] = is_defined(static_cast<ReduceOp>(kOp), kDType) ? run<kDType, static_cast<ReduceOp>(kOp)> : nullptr),
   ...);
}

template <std::size_t... kIndex>
constexpr ReduceTable make_table(std::index_sequence<kIndex...>) noexcept {
  ReduceTable table{
      .functions = {},
      .weighted = {averages_in_steps(static_cast<DType>(kIndex)) ? run_weighted<static_cast<DType>(kIndex)>
                                                                 : nullptr...}};
  (fill_row<static_cast<DType>(kIndex)>(table.functions[kIndex], std::make_index_sequence<kReduceOpCount>{}), ...);
  return table;
}

template <DType kDType, Overflow kOverflow>
void narrow(const ConvertArgs& args) noexcept {
  reference::convert(DType::float32, kDType, args.in, args.out, args.count,
                     {.overflow = kOverflow, .counters = args.counters});
}

template <DType kDType>
void widen(const ConvertArgs& args) noexcept {
  reference::convert(kDType, DType::float32, args.in, args.out, args.count, {.counters = args.counters});
}

template <DType kDType>
void accumulate(const ConvertArgs& args) noexcept {
  reference::convert_accumulate(kDType, args.in, static_cast<float*>(args.out), args.count,
                                {.counters = args.counters});
}

/// The reference counts if it gets counters, so both columns of the table are the same function.
template <DType kDType>
constexpr SmallFormatKernels small_format = {
    .narrow = {{narrow<kDType, Overflow::to_infinity>, narrow<kDType, Overflow::to_infinity>},
               {narrow<kDType, Overflow::saturate>, narrow<kDType, Overflow::saturate>}},
    .widen = {widen<kDType>, widen<kDType>},
    .accumulate = {accumulate<kDType>, accumulate<kDType>},
};

void quantize(const QuantizeArgs& args) noexcept {
  reference::quantize(static_cast<const float*>(args.in), static_cast<std::int8_t*>(args.out), args.scales, args.count,
                      args.block, args.counters);
}
void dequantize(const QuantizeArgs& args) noexcept {
  reference::dequantize(static_cast<const std::int8_t*>(args.in), args.scales, static_cast<float*>(args.out),
                        args.count, args.block);
}
void dequantize_accumulate(const QuantizeArgs& args) noexcept {
  reference::dequantize_accumulate(static_cast<const std::int8_t*>(args.in), args.scales, static_cast<float*>(args.out),
                                   args.count, args.block);
}

template <DType kDType>
void count_values(const void* data, std::size_t count, ValueCounts& found) noexcept {
  reference::count_values(kDType, data, count, found);
}

template <std::size_t... kIndex>
constexpr ConvertTable make_convert_table(std::index_sequence<kIndex...>) noexcept {
  return {.small = {small_format<kSmallFormats[0]>, small_format<kSmallFormats[1]>, small_format<kSmallFormats[2]>,
                    small_format<kSmallFormats[3]>},
          .quantize = quantize,
          .dequantize = dequantize,
          .dequantize_accumulate = dequantize_accumulate,
          .count_values = {count_values<static_cast<DType>(kIndex)>...}};
}

}  // namespace

constinit const ConvertTable kConvertTable = make_convert_table(std::make_index_sequence<kDTypeCount>{});
constinit const ExactTable kExactTable = {};
constinit const ReduceTable kReduceTable = make_table(std::make_index_sequence<kDTypeCount>{});

}  // namespace tributary::kernels::scalar
