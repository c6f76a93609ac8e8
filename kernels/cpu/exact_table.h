#pragma once
// The kernels for exact sums that one target offers; kernel_table.h has its other kernels.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tributary/kernels/target.h"
#include "tributary/protocol/types.h"

namespace tributary::kernels {

struct ExactArgs {
  /// Sums the elements [first, end) of the call without a kernel.
  using Redo = void(const ExactArgs& args, std::size_t first, std::size_t end) noexcept;

  const void* const* inputs;
  std::size_t inputs_count;
  int inputs_log2;  // rounded up
  void* out;
  std::size_t count;
  std::uint32_t divisor;
  double reciprocal;  // 1 / divisor; exact if the divisor is a power of two
  bool ahead;         // the arrays do not fit in the second-level cache
  Redo* redo;
};
using ExactFunction = void (*)(const ExactArgs&) noexcept;

struct ExactTable {
  ExactFunction functions[kDTypeCount];  // null for integers, and where only the reference sums
};

/// Returns the table of a target, which must be one of available_targets().
[[nodiscard]] const ExactTable& exact_table(Target target) noexcept;

/// exact_sum() of exact.h by the kernels of a table. `ahead`: see ExactArgs.
void exact_sum_by(const ExactTable& table, DType dtype, std::span<const void* const> inputs, void* out,
                  std::size_t count, std::uint32_t divisor, bool ahead) noexcept;

}  // namespace tributary::kernels
