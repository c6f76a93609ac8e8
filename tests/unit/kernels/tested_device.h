#pragma once
// The device on which the tests of CUDA kernels run.
#include "kernels/cuda/device_array.h"

namespace tributary::kernels::cuda {

/// Set by main() before the first test.
extern Device* device;

}  // namespace tributary::kernels::cuda
