// Partial sums on device memory: the kernels that find the blocks of forms, add them, and round their sums. The host
// finds each kernel by its name.
#include "kernels/cuda/device/partial_body.cuh"

namespace tributary::kernels::cuda {
namespace {

constexpr std::uint32_t kWarpLanes = 32;
constexpr std::uint32_t kWarps = kThreadsPerBlock / kWarpLanes;

/// The thread block that runs this code. All its threads take every step.
struct BlockThreads {
  template <class T>
  struct Local {
    __device__ __forceinline__ T& operator[](std::uint32_t /*thread*/) { return value; }
    T value;
  };

  template <class Function>
  __device__ __forceinline__ void each(Function function) {
    function(threadIdx.x);
  }
  template <class Function>
  __device__ __forceinline__ int least(Function function) {
    return joined(function(threadIdx.x), [](int a, int b) { return a < b ? a : b; });
  }
  template <class Function>
  __device__ __forceinline__ int most(Function function) {
    return joined(function(threadIdx.x), [](int a, int b) { return a > b ? a : b; });
  }

  /// Replaces the value of each thread by the sum of those before it. Returns the sum of all.
  __device__ std::uint64_t exclusive_sums(Local<std::uint64_t>& values) {
    __shared__ std::uint64_t sums[kThreadsPerBlock];
    const std::uint64_t mine = values.value;
    std::uint64_t sum = mine;
    for (std::uint32_t apart = 1; apart < kThreadsPerBlock; apart *= 2) {
      sums[threadIdx.x] = sum;
      __syncthreads();
      if (threadIdx.x >= apart) sum += sums[threadIdx.x - apart];
      __syncthreads();
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    values.value = sum - mine;
    const std::uint64_t all = sums[kThreadsPerBlock - 1];
    __syncthreads();
    return all;
  }

 private:
  /// Joins the values of all threads. It is also a barrier: afterwards every thread sees what the others wrote before.
  template <class Join>
  __device__ __forceinline__ int joined(int value, Join join) {
    __shared__ int of_warps[kWarps];
    for (std::uint32_t mask = kWarpLanes / 2; mask > 0; mask /= 2)
      value = join(value, __shfl_xor_sync(0xFFFFFFFFU, value, mask));
    if (threadIdx.x % kWarpLanes == 0) of_warps[threadIdx.x / kWarpLanes] = value;
    __syncthreads();
    value = of_warps[0];
    for (std::uint32_t warp = 1; warp < kWarps; ++warp) value = join(value, of_warps[warp]);
    __syncthreads();
    return value;
  }
};

template <DType kDType, PartialStep kStep>
__device__ __forceinline__ void run(const PartialArguments& arguments) {
  BlockThreads threads;
  partial_blocks<kDType, kStep>(arguments, blockIdx.x, gridDim.x, threads);
}

}  // namespace

#define TRIBUTARY_PARTIAL_STEP(dtype, step)                                          \
  extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)                     \
      partial_##step##_##dtype(const __grid_constant__ PartialArguments arguments) { \
    run<DType::dtype, PartialStep::step>(arguments);                                 \
  }
#define TRIBUTARY_PARTIAL(dtype)         \
  TRIBUTARY_PARTIAL_STEP(dtype, measure) \
  TRIBUTARY_PARTIAL_STEP(dtype, write)   \
  TRIBUTARY_PARTIAL_STEP(dtype, round)

TRIBUTARY_PARTIAL(float16)
TRIBUTARY_PARTIAL(bfloat16)
TRIBUTARY_PARTIAL(float32)
TRIBUTARY_PARTIAL(float64)
TRIBUTARY_PARTIAL(float8_e4m3)
TRIBUTARY_PARTIAL(float8_e5m2)

/// One thread block for each input.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    partial_check(const __grid_constant__ PartialArguments arguments) {
  BlockThreads threads;
  for (std::uint32_t input = blockIdx.x; input < arguments.inputs_count; input += gridDim.x)
    check_input(arguments, input, threads);
}

/// One thread block.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    partial_place(const __grid_constant__ PartialArguments arguments) {
  BlockThreads threads;
  if (blockIdx.x == 0) place_blocks(arguments, threads);
}

}  // namespace tributary::kernels::cuda
