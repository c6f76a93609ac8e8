#include "bits.h"

#include <ATen/Functions.h>

namespace tributary::torch {
namespace {

// A boolean takes one byte in memory, and only one bit of this byte counts.
std::int64_t bits_of_byte(at::ScalarType type) {
  return type == at::kBool ? 1 : 8;
}

at::Tensor places(at::ScalarType type, at::Device device) {
  return at::arange(bits_of_byte(type), at::TensorOptions(device).dtype(at::kByte));
}

}  // namespace

std::int64_t bits_of(at::ScalarType type) {
  return static_cast<std::int64_t>(c10::elementSize(type)) * bits_of_byte(type);
}

at::Tensor spread_bits(const at::Tensor& tensor) {
  const at::Tensor bytes = tensor.detach().contiguous().view({-1, 1}).view(at::kByte).view({-1, 1});
  return bytes.bitwise_right_shift(places(tensor.scalar_type(), tensor.device())).bitwise_and_(1).view(-1);
}

at::Tensor join_bits(const at::Tensor& bits, at::ScalarType type) {
  const at::Tensor each = bits.bitwise_and(1).view({-1, bits_of_byte(type)});
  const at::Tensor bytes = each.bitwise_left_shift(places(type, bits.device())).sum(1, false, at::kByte);
  return bytes.view(type);
}

}  // namespace tributary::torch
