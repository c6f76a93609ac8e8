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

/// kLanes lanes share a block of elements. All lanes of a warp take part in the comparison, even those whose block is
/// beyond the last.
template <std::uint32_t kLanes>
__device__ __forceinline__ void quantize_blocks(const QuantizeArguments& arguments) {
  constexpr std::uint32_t kBlocksOfWarp = kWarpLanes / kLanes;
  const std::uint32_t lane = threadIdx.x % kLanes;
  const std::uint32_t block_of_warp = threadIdx.x % kWarpLanes / kLanes;
  const std::uint64_t apart = lane_of_grid().count / kLanes;
  const std::uint64_t blocks = blocks_of(arguments);
  for (std::uint64_t first = lane_of_grid().index / kWarpLanes * kBlocksOfWarp; first < blocks; first += apart) {
    const ScaledBlock block = block_at(arguments, first + block_of_warp);
    const LanePart part = load_part<kLanes>(arguments, block, lane);
    std::uint32_t largest = largest_of(part);
    TRIBUTARY_UNROLL
    for (std::uint32_t mask = kLanes / 2; mask > 0; mask /= 2)
      largest = max(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, mask));
    quantize_part<kLanes>(arguments, block, lane, part, largest);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    quantize(const __grid_constant__ QuantizeArguments arguments) {
  if (arguments.lanes == 8) return quantize_blocks<8>(arguments);
  if (arguments.lanes == 16) return quantize_blocks<16>(arguments);
  quantize_blocks<32>(arguments);
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
