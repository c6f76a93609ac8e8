#pragma once
// What one target (instruction set) offers: plain function pointers, filled in by the sources that are compiled once
// per target.
#include <cstddef>
#include <cstdint>

#include "tributary/kernels/target.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels {

struct ReduceArgs {
  const void* const* inputs;
  std::size_t inputs_count;  // 1..kReduceInputsMax
  void* out;
  std::size_t count;
  std::uint32_t divisor;  // 1 for every op but avg
  bool stream;            // write the result past the caches; then out is none of the inputs
};
using ReduceFunction = void (*)(const ReduceArgs&) noexcept;

struct ReduceTable {
  ReduceFunction functions[kDTypeCount][kReduceOpCount];
};

/// The table of a target, which must be among available_targets().
[[nodiscard]] const ReduceTable& reduce_table(Target target) noexcept;

}  // namespace tributary::kernels
