#pragma once
// The index of a thread in its grid and its block.
#include "kernels/cuda/device/portable.cuh"

namespace tributary::kernels::cuda {

__device__ __forceinline__ Lane lane_of_grid() {
  return {std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x, std::uint64_t{gridDim.x} * blockDim.x};
}
__device__ __forceinline__ Lane lane_of_block() {
  return {threadIdx.x, blockDim.x};
}

}  // namespace tributary::kernels::cuda
