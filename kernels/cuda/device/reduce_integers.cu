// reduce() on device memory, for integers: one kernel for each dtype and operation. The host finds each kernel by its
// name.
#include "kernels/cuda/device/grid.cuh"
#include "kernels/cuda/device/reduce_body.cuh"

namespace tributary::kernels::cuda {

#define TRIBUTARY_REDUCE(dtype, op)                                              \
  extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)                 \
      reduce_##dtype##_##op(const __grid_constant__ ReduceArguments arguments) { \
    reduce_body<DType::dtype, ReduceOp::op>(arguments, lane_of_grid());          \
  }

#define TRIBUTARY_REDUCE_EVERY_OP(dtype) \
  TRIBUTARY_REDUCE(dtype, sum)           \
  TRIBUTARY_REDUCE(dtype, prod)          \
  TRIBUTARY_REDUCE(dtype, min)           \
  TRIBUTARY_REDUCE(dtype, max)           \
  TRIBUTARY_REDUCE(dtype, avg)           \
  TRIBUTARY_REDUCE(dtype, band)          \
  TRIBUTARY_REDUCE(dtype, bor)           \
  TRIBUTARY_REDUCE(dtype, bxor)          \
  TRIBUTARY_REDUCE(dtype, land)          \
  TRIBUTARY_REDUCE(dtype, lor)           \
  TRIBUTARY_REDUCE(dtype, lxor)

TRIBUTARY_REDUCE_EVERY_OP(int8)
TRIBUTARY_REDUCE_EVERY_OP(uint8)
TRIBUTARY_REDUCE_EVERY_OP(int16)
TRIBUTARY_REDUCE_EVERY_OP(uint16)
TRIBUTARY_REDUCE_EVERY_OP(int32)
TRIBUTARY_REDUCE_EVERY_OP(uint32)
TRIBUTARY_REDUCE_EVERY_OP(int64)
TRIBUTARY_REDUCE_EVERY_OP(uint64)

}  // namespace tributary::kernels::cuda
