// In place of the embedded device code, where the build has none.
#include "tributary/kernels/cuda.h"

namespace tributary::kernels::cuda {

std::span<const CudaImage> embedded_cuda_images() noexcept {
  return {};
}

}  // namespace tributary::kernels::cuda
