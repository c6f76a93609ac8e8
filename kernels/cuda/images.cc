// The device code that images.S puts into the program.
#include "tributary/kernels/cuda.h"

extern "C" {
extern const unsigned char tributary_fatbin_reduce_integers[];
extern const unsigned char tributary_fatbin_reduce_floats[];
extern const unsigned char tributary_fatbin_convert[];
extern const unsigned char tributary_fatbin_copy[];
extern const unsigned char tributary_fatbin_partial[];
}

namespace tributary::kernels::cuda {

std::span<const CudaImage> embedded_cuda_images() noexcept {
  static constexpr CudaImage kImages[] = {
      {"reduce_integers", tributary_fatbin_reduce_integers},
      {"reduce_floats", tributary_fatbin_reduce_floats},
      {"convert", tributary_fatbin_convert},
      {"copy", tributary_fatbin_copy},
      {"partial", tributary_fatbin_partial},
  };
  return kImages;
}

}  // namespace tributary::kernels::cuda
