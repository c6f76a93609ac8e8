// Conversions on device memory, or from device memory to mapped host memory: one kernel for each format and direction.
// The host finds each kernel by its name.
#include "kernels/cuda/device/convert_body.cuh"
#include "kernels/cuda/device/grid.cuh"
#include "kernels/cuda/device/quantize_body.cuh"

namespace tributary::kernels::cuda {

#define TRIBUTARY_CONVERT(name, ...)                             \
  extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) \
      name(const __grid_constant__ ConvertArguments arguments) { \
    convert_body<__VA_ARGS__>(arguments, lane_of_grid());        \
  }

#define TRIBUTARY_CONVERT_FORMAT(dtype)                                        \
  TRIBUTARY_CONVERT(narrow_##dtype, NarrowBody<DType::dtype, false>)           \
  TRIBUTARY_CONVERT(narrow_##dtype##_saturate, NarrowBody<DType::dtype, true>) \
  TRIBUTARY_CONVERT(widen_##dtype, WidenBody<DType::dtype, false>)             \
  TRIBUTARY_CONVERT(accumulate_##dtype, WidenBody<DType::dtype, true>)

TRIBUTARY_CONVERT_FORMAT(float16)
TRIBUTARY_CONVERT_FORMAT(bfloat16)
TRIBUTARY_CONVERT_FORMAT(float8_e4m3)
TRIBUTARY_CONVERT_FORMAT(float8_e5m2)

/// `lanes` lanes share a block of elements. All lanes of a warp take part in the comparison, even those whose block is
/// beyond the last.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    quantize(const __grid_constant__ QuantizeArguments arguments) {
  const std::uint32_t lane = threadIdx.x % arguments.lanes;
  const std::uint32_t blocks_of_warp = kWarpLanes / arguments.lanes;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * blockDim.x / kWarpLanes;
  const std::uint64_t blocks = (arguments.count + arguments.block - 1) / arguments.block;
  const std::uint32_t block_of_warp = threadIdx.x % kWarpLanes / arguments.lanes;
  for (std::uint64_t first = lane_of_grid().index / kWarpLanes * blocks_of_warp; first < blocks;
       first += warps * blocks_of_warp) {
    const std::uint64_t begin = min((first + block_of_warp) * arguments.block, arguments.count);
    const std::uint64_t end = min(begin + arguments.block, arguments.count);
    const LanePart part = load_part(arguments, begin, end, lane);
    std::uint32_t largest = largest_of(part);
    for (std::uint32_t apart = arguments.lanes / 2; apart > 0; apart /= 2)
      largest = max(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, apart));
    if (begin < end) quantize_part(arguments, begin, end, lane, part, largest);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    dequantize(const __grid_constant__ QuantizeArguments arguments) {
  dequantize_body<false>(arguments, lane_of_grid());
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    dequantize_accumulate(const __grid_constant__ QuantizeArguments arguments) {
  dequantize_body<true>(arguments, lane_of_grid());
}

}  // namespace tributary::kernels::cuda
