#pragma once
// The tables of the reference, for a CPU that has no vector target.
#include "kernels/cpu/exact_table.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/partial_table.h"

namespace tributary::kernels::scalar {

extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;
extern const ExactTable kExactTable;  // empty: the reference sums by itself
extern const PartialTable kPartialTable;

}  // namespace tributary::kernels::scalar
