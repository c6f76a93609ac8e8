// Conversions on device memory, or from it to mapped host memory: one kernel for each format and direction, found by
// its name.
#include "cuda/device/convert_body.cuh"
#include "cuda/device/grid.cuh"
#include "cuda/device/quantize_body.cuh"

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

/// A warp to a block of elements. The second pass finds the block in the first cache.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    quantize(const __grid_constant__ QuantizeArguments arguments) {
  const std::uint32_t lane = threadIdx.x % kWarpLanes;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * blockDim.x / kWarpLanes;
  const std::uint64_t blocks = (arguments.count + arguments.block - 1) / arguments.block;
  for (std::uint64_t block = lane_of_grid().index / kWarpLanes; block < blocks; block += warps) {
    const std::uint64_t begin = block * arguments.block;
    const std::uint64_t end = begin + arguments.block < arguments.count ? begin + arguments.block : arguments.count;
    std::uint32_t largest = largest_of_lane(arguments, begin, end, lane);
    for (std::uint32_t apart = kWarpLanes / 2; apart > 0; apart /= 2)
      largest = max(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, apart));
    quantize_by_lane(arguments, begin, end, lane, largest);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    dequantize(const __grid_constant__ QuantizeArguments arguments) {
  const Lane lane = lane_of_grid();
  for (std::uint64_t i = lane.index; i < arguments.count; i += lane.count) dequantize_element<false>(arguments, i);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    dequantize_accumulate(const __grid_constant__ QuantizeArguments arguments) {
  const Lane lane = lane_of_grid();
  for (std::uint64_t i = lane.index; i < arguments.count; i += lane.count) dequantize_element<true>(arguments, i);
}

}  // namespace tributary::kernels::cuda
