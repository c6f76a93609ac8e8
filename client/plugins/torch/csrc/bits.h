#pragma once

#include <ATen/core/Tensor.h>

namespace tributary_torch {

/// The bits of integers or booleans as bytes of 0 and 1, so that a minimum is their "and", a maximum their "or", and
/// the last bit of a sum their "exclusive or". An element's stay together.
[[nodiscard]] at::Tensor spread_bits(const at::Tensor& tensor);

/// The reverse: elements of `type`, in one dimension. Of each byte the last bit counts.
[[nodiscard]] at::Tensor join_bits(const at::Tensor& bits, at::ScalarType type);

/// Bytes that spread_bits() makes of one element of `type`.
[[nodiscard]] std::int64_t bits_of(at::ScalarType type);

}  // namespace tributary_torch
