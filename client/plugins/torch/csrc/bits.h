#pragma once

#include <ATen/core/Tensor.h>

namespace tributary::torch {

/// Writes each bit of integers or booleans as a byte of 0 or 1. Then the minimum of such bytes is the bits' "and", the
/// maximum their "or", and the last bit of a sum their "exclusive or". The bits of an element stay together.
[[nodiscard]] at::Tensor spread_bits(const at::Tensor& tensor);

/// The reverse of spread_bits(): returns elements of `type`, in one dimension. The last bit of each byte counts.
[[nodiscard]] at::Tensor join_bits(const at::Tensor& bits, at::ScalarType type);

/// Returns the number of bytes that spread_bits() makes from one element of `type`.
[[nodiscard]] std::int64_t bits_of(at::ScalarType type);

}  // namespace tributary::torch
