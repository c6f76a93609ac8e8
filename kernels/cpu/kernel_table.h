#pragma once
// The kernels that one target (instruction set) offers: plain function pointers, filled in by the sources that are
// compiled once per target.
#include <cstddef>
#include <cstdint>

#include "tributary/kernels/convert.h"
#include "tributary/kernels/counters.h"
#include "tributary/kernels/target.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels {

struct ReduceArgs {
  const void* const* inputs;
  std::size_t inputs_count;  // 1..kReduceInputsMax
  void* out;
  std::size_t count;
  std::uint32_t divisor;  // 1 for every op except avg
  bool stream;            // write the result past the caches; `out` must then be none of the inputs
  bool ahead = false;     // the arrays do not fit in the second cache
  // Members only for ReduceTable::weighted:
  const double* weights = nullptr;  // one weight for each input
  double quotient = 1;              // divisor of the weighted sum, positive
  double largest = 0;               // largest value of the dtype
};
using ReduceFunction = void (*)(const ReduceArgs&) noexcept;

struct ReduceTable {
  ReduceFunction functions[kDTypeCount][kReduceOpCount];  // null where the type lacks the operator (is_defined)
  /// Sums the weighted inputs, in input order, and divides by `quotient`; the result of a finite sum is at most
  /// `largest`. Weights, products, sums and quotients are rounded to the accumulator's type. Null for integers.
  ReduceFunction weighted[kDTypeCount];
};

struct ConvertArgs {
  const void* in;
  void* out;
  std::size_t count;
  ConvertCounters* counters;  // null for the functions that do not count
  bool stream;                // write the result past the caches
  bool ahead = false;         // the arrays do not fit in the second cache
};
using ConvertFunction = void (*)(const ConvertArgs&) noexcept;

/// The formats that convert() knows besides float32.
inline constexpr std::size_t kSmallFormatCount = 4;
inline constexpr DType kSmallFormats[kSmallFormatCount] = {DType::float16, DType::bfloat16, DType::float8_e4m3,
                                                           DType::float8_e5m2};

struct SmallFormatKernels {
  ConvertFunction narrow[2][2];   // from float32; indices: Overflow, then 1 for the function that counts
  ConvertFunction widen[2];       // to float32; index: 1 for the function that counts
  ConvertFunction accumulate[2];  // added to float32; index: 1 for the function that counts
};

struct QuantizeArgs {
  const void* in;
  void* out;
  float* scales;  // quantize writes the scales; the other kernels read them
  std::size_t count;
  std::size_t block;
  ConvertCounters* counters;  // may be null
  bool stream;
  bool ahead = false;
};
using QuantizeFunction = void (*)(const QuantizeArgs&) noexcept;
using CountFunction = void (*)(const void* data, std::size_t count, ValueCounts& found) noexcept;

struct ConvertTable {
  SmallFormatKernels small[kSmallFormatCount];
  QuantizeFunction quantize;
  QuantizeFunction dequantize;
  QuantizeFunction dequantize_accumulate;
  CountFunction count_values[kDTypeCount];  // null for integers
};

/// Functions that return the tables of a target, which must be one of available_targets().
[[nodiscard]] const ReduceTable& reduce_table(Target target) noexcept;
[[nodiscard]] const ConvertTable& convert_table(Target target) noexcept;

}  // namespace tributary::kernels
