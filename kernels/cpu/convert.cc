#include "tributary/kernels/convert.h"

#include <algorithm>
#include <iterator>

#include "kernels/cpu/cache.h"
#include "kernels/cpu/kernel_table.h"
#include "tributary/protocol/assert.h"

namespace tributary::kernels {
namespace {

const ConvertTable& active_table() noexcept {
  static const ConvertTable& table = convert_table(active_target());
  return table;
}

/// Returns nullptr for a dtype that is not one of the small formats.
const SmallFormatKernels* kernels_of(DType dtype) noexcept {
  const auto* const found = std::ranges::find(kSmallFormats, dtype);
  return found == std::end(kSmallFormats) ? nullptr : &active_table().small[found - kSmallFormats];
}

struct Sizes {
  std::size_t ahead_bytes = cache_sizes().second;
  std::size_t stream_bytes = kernels::stream_bytes();
};

const Sizes& sizes() noexcept {
  static const Sizes found;
  return found;
}

/// The same limit as in reduce().
bool should_stream(std::size_t bytes) noexcept {
  return bytes > sizes().stream_bytes;
}
bool should_read_ahead(std::size_t bytes) noexcept {
  return bytes > sizes().ahead_bytes;
}

}  // namespace

bool can_convert(DType from, DType to) noexcept {
  const auto is_small = [](DType dtype) { return std::ranges::find(kSmallFormats, dtype) != std::end(kSmallFormats); };
  return (from == DType::float32 && is_small(to)) || (is_small(from) && to == DType::float32);
}

void convert(DType from, DType to, const void* in, void* out, std::size_t count,
             const ConvertOptions& options) noexcept {
  TRIBUTARY_ASSERT(can_convert(from, to), "from {} to {} there is no conversion", from, to);
  const bool narrows = from == DType::float32;
  const bool counts = options.counters != nullptr;
  const SmallFormatKernels* const kernels = kernels_of(narrows ? to : from);
  if (kernels == nullptr) return;
  const ConvertFunction function =
      narrows ? kernels->narrow[static_cast<std::size_t>(options.overflow)][counts] : kernels->widen[counts];
  const std::size_t bytes = count * (size_of(from) + size_of(to));
  function({.in = in,
            .out = out,
            .count = count,
            .counters = options.counters,
            .stream = should_stream(bytes),
            .ahead = should_read_ahead(bytes)});
}

void convert_accumulate(DType from, const void* in, float* accumulator, std::size_t count,
                        const ConvertOptions& options) noexcept {
  TRIBUTARY_ASSERT(can_convert(from, DType::float32), "from {} to float32 there is no conversion", from);
  const SmallFormatKernels* const kernels = kernels_of(from);
  if (kernels == nullptr) return;
  kernels->accumulate[options.counters != nullptr](
      {.in = in,
       .out = accumulator,
       .count = count,
       .counters = options.counters,
       .stream = false,
       .ahead = should_read_ahead(count * (size_of(from) + sizeof(float)))});
}

void quantize(const float* in, std::int8_t* out, float* scales, std::size_t count, std::size_t block,
              ConvertCounters* counters) noexcept {
  TRIBUTARY_ASSERT(is_scale_block(block), "blocks of {} elements have no scale", block);
  active_table().quantize({.in = in,
                           .out = out,
                           .scales = scales,
                           .count = count,
                           .block = block,
                           .counters = counters,
                           .stream = should_stream(count * (sizeof(float) + 1)),
                           .ahead = should_read_ahead(count * (sizeof(float) + 1))});
}

// All kernels use one struct of arguments; these two kernels only read the scales.
void dequantize(const std::int8_t* in, const float* scales, float* out, std::size_t count, std::size_t block) noexcept {
  TRIBUTARY_ASSERT(is_scale_block(block), "blocks of {} elements have no scale", block);
  active_table().dequantize({.in = in,
                             .out = out,
                             .scales = const_cast<float*>(scales),
                             .count = count,
                             .block = block,
                             .counters = nullptr,
                             .stream = should_stream(count * (sizeof(float) + 1)),
                             .ahead = should_read_ahead(count * (sizeof(float) + 1))});
}

void dequantize_accumulate(const std::int8_t* in, const float* scales, float* accumulator, std::size_t count,
                           std::size_t block) noexcept {
  TRIBUTARY_ASSERT(is_scale_block(block), "blocks of {} elements have no scale", block);
  active_table().dequantize_accumulate({.in = in,
                                        .out = accumulator,
                                        .scales = const_cast<float*>(scales),
                                        .count = count,
                                        .block = block,
                                        .counters = nullptr,
                                        .stream = false,
                                        .ahead = should_read_ahead(count * (sizeof(float) + 1))});
}

}  // namespace tributary::kernels
