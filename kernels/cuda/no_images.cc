// Takes the place of images.cc in a build without device code.
#include "tributary/kernels/cuda.h"

namespace tributary::kernels::cuda {

std::span<const CudaImage> embedded_cuda_images() noexcept {
  return {};
}

}  // namespace tributary::kernels::cuda
