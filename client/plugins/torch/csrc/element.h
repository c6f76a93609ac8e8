#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "staging.h"
#include "tributary/tributary.h"

namespace tributary::torch {

/// Returns the type's name in Python, such as "torch.float32".
std::string type_name(at::ScalarType type);

/// The element type that a call which only moves data uses for a tensor. Types that Tributary cannot add, such as
/// complex128, travel as bytes.
struct Element {
  tributary_dtype dtype;
  std::size_t per_item;  ///< number of Tributary elements per element of the tensor

  explicit Element(const at::Tensor& tensor);
  [[nodiscard]] std::size_t count(const at::Tensor& tensor) const {
    return static_cast<std::size_t>(tensor.numel()) * per_item;
  }
};

/// How a call that reduces passes its tensors: the element type, the operation, and the conversion before the call.
///
/// bool      travels as uint8: SUM and MAX mean "or", PRODUCT and MIN mean "and"; AVG has no meaning and is refused
/// complex   travels as pairs of reals, only for SUM, AVG and PREMUL_SUM
/// PREMUL_SUM  the input is multiplied in its own precision, then summed
/// BAND, BOR, BXOR  only of integers and bool
/// Any other case, such as a sum of float8_e5m2fnuz, raises an error that says what is possible.
class Reduction {
 public:
  Reduction(const at::Tensor& example, const c10d::ReduceOp& op, const char* what);

  [[nodiscard]] tributary_dtype dtype() const noexcept { return dtype_; }
  /// Returns the operation, with the numerics that the calling thread had chosen when this object was made.
  [[nodiscard]] tributary_op op() const noexcept { return static_cast<tributary_op>(op_ | numerics_); }
  /// Returns true if source() makes a copy.
  [[nodiscard]] bool converts() const noexcept { return factor_.defined(); }

  /// Returns `tensor` in the form that the library needs, in the same memory.
  [[nodiscard]] at::Tensor view(const at::Tensor& tensor) const;
  /// Returns the memory to send for `tensor`: its view, or a converted copy.
  [[nodiscard]] at::Tensor source(const at::Tensor& tensor) const;
  /// Returns the memory in which the library writes `tensor`'s result. With `apart`, it is not the tensor's own memory.
  [[nodiscard]] at::Tensor target(Staging& staging, const at::Tensor& tensor, bool apart = false) const;
  /// Combines two tensors of one rank to one.
  [[nodiscard]] at::Tensor combine(const at::Tensor& a, const at::Tensor& b) const;

 private:
  tributary_dtype dtype_;
  tributary_op op_;
  int numerics_;
  at::Tensor factor_;  // factor of PREMUL_SUM; undefined for other operations
};

}  // namespace tributary::torch
