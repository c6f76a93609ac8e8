#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "staging.h"
#include "tributary/tributary.h"

namespace tributary_torch {

/// As Python knows it: "torch.float32".
std::string type_name(at::ScalarType type);

/// How a call that only moves data names a tensor's elements. Types that Tributary cannot add up, such as int16, travel
/// as bytes.
struct Element {
  tributary_dtype dtype;
  std::size_t per_item;  ///< Tributary elements in one element of the tensor

  explicit Element(const at::Tensor& tensor);
  [[nodiscard]] std::size_t count(const at::Tensor& tensor) const {
    return static_cast<std::size_t>(tensor.numel()) * per_item;
  }
};

/// How a call that reduces sees its tensors: the element type, the operation, and what has to be done to the data
/// first.
///
/// bool      travels as uint8: SUM and MAX mean "or", PRODUCT and MIN mean "and"; AVG has no meaning and is refused
/// complex   travels as pairs of reals, for SUM, AVG and PREMUL_SUM alone
/// PREMUL_SUM  the input is scaled in its own precision, then summed
/// BAND, BOR, BXOR  every bit travels as a byte (bits.h): eight times the bytes, whatever the number of ranks
/// Others (sums of int16) raise an error that says what is possible.
class Reduction {
 public:
  Reduction(const at::Tensor& example, const c10d::ReduceOp& op, const char* what);

  [[nodiscard]] tributary_dtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] tributary_op op() const noexcept { return op_; }
  /// source() is a copy.
  [[nodiscard]] bool converts() const noexcept { return bitwise_ || factor_.defined(); }

  /// `tensor` as the library shall see it; shares memory with it. Not of bitwise operations.
  [[nodiscard]] at::Tensor view(const at::Tensor& tensor) const;
  /// The memory that has to be sent for `tensor`: its view, or a converted copy.
  [[nodiscard]] at::Tensor source(const at::Tensor& tensor) const;
  /// Where the library shall put what becomes `tensor`; with `apart`, not the tensor's own memory.
  [[nodiscard]] at::Tensor target(Staging& staging, const at::Tensor& tensor, bool apart = false) const;
  /// Serves two tensors of one rank.
  [[nodiscard]] at::Tensor combine(const at::Tensor& a, const at::Tensor& b) const;

 private:
  at::ScalarType type_;
  bool bitwise_;
  tributary_dtype dtype_;
  tributary_op op_;
  at::Tensor factor_;  // of PREMUL_SUM, else undefined
};

}  // namespace tributary_torch
