#pragma once
// The tables of the reference, for a CPU that has no vector target.
#include "kernels/cpu/kernel_table.h"

namespace tributary::kernels::scalar {

extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;

}  // namespace tributary::kernels::scalar
