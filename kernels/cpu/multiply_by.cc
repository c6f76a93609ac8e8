#include "tributary/kernels/multiply_by.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tributary/kernels/reduce.h"

namespace tributary::kernels {
namespace {

// The array of factors stays in the first cache, beside a block of the input.
constexpr std::size_t kBlockBytes = 8192;

}  // namespace

void multiply_by(DType dtype, const void* in, const void* factor, void* out, std::size_t count) noexcept {
  const std::size_t element = size_of(dtype);
  const std::size_t block = std::min(count, kBlockBytes / element);
  alignas(64) std::array<std::byte, kBlockBytes> factors;
  for (std::size_t i = 0; i < block; ++i) std::memcpy(factors.data() + i * element, factor, element);
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::array<const void*, 2> inputs{static_cast<const std::byte*>(in) + begin * element, factors.data()};
    reduce(dtype, ReduceOp::prod, inputs, static_cast<std::byte*>(out) + begin * element,
           std::min(block, count - begin));
  }
}

}  // namespace tributary::kernels
