// Kernels that copy one array, also into mapped host memory, or, in one launch, many tensors into one buffer or back.
#include "kernels/cuda/device/copy_body.cuh"
#include "kernels/cuda/device/grid.cuh"

namespace tributary::kernels::cuda {

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
    copy_bytes(void* to, const void* from, std::uint64_t bytes) {
  copy_body(static_cast<char*>(to), static_cast<const char*>(from), bytes, lane_of_grid());
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) pack(const __grid_constant__ PackArguments arguments) {
  for (std::uint64_t chunk = blockIdx.x; chunk < arguments.chunks; chunk += gridDim.x)
    pack_chunk(arguments, chunk, lane_of_block());
}

}  // namespace tributary::kernels::cuda
