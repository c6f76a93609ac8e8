#pragma once
// The reference as a target: what is left when a CPU has no vector target.
#include "kernels/cpu/kernel_table.h"

namespace tributary::kernels::scalar {

extern const ReduceTable kReduceTable;
extern const ConvertTable kConvertTable;

}  // namespace tributary::kernels::scalar
