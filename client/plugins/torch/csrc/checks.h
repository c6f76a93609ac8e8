#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "element.h"

/// The checks that torch.distributed leaves to the backend. `what` is the name of the call for the message.
namespace tributary::torch {

inline std::size_t elements(const at::Tensor& tensor) {
  return static_cast<std::size_t>(tensor.numel());
}

/// One process uses one device. So a list with a tensor for each device must hold one tensor.
template <class T>
const T& only(const std::vector<T>& list, const char* what) {
  TORCH_CHECK(list.size() == 1, "tributary: ", what, " takes one tensor per rank; it got ", list.size());
  return list.front();
}

inline const std::vector<at::Tensor>& one_per_rank(const std::vector<std::vector<at::Tensor>>& lists, int size,
                                                   const char* what) {
  const std::vector<at::Tensor>& list = only(lists, what);
  TORCH_CHECK(list.size() == static_cast<std::size_t>(size), "tributary: ", what, " needs a tensor for each of the ",
              size, " ranks; it got ", list.size());
  return list;
}

inline void check_same_type(const at::Tensor& a, const at::Tensor& b, const char* what) {
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), "tributary: ", what, " takes tensors of one type; it got ",
              type_name(a.scalar_type()), " and ", type_name(b.scalar_type()));
}

inline void check_same_size(const at::Tensor& a, const at::Tensor& b, const char* what) {
  TORCH_CHECK(a.numel() == b.numel(), "tributary: ", what, " takes tensors of one size; it got ", a.numel(), " and ",
              b.numel(), " elements");
}

inline void check_root(std::int64_t root, int size, const char* what) {
  TORCH_CHECK(root >= 0 && root < size, "tributary: ", what, ": invalid root rank ", root, " in a group of ", size);
}

inline bool equal_sizes(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& t) { return t.numel() == tensors.front().numel(); });
}

/// Checks a list of several tensors of one rank.
inline void check_alike(const std::vector<at::Tensor>& tensors, const char* what) {
  TORCH_CHECK(!tensors.empty(), "tributary: ", what, " needs a tensor");
  for (const at::Tensor& tensor : tensors) {
    check_same_type(tensors.front(), tensor, what);
    TORCH_CHECK(tensors.front().sizes() == tensor.sizes(), "tributary: ", what, " takes tensors of one shape; it got ",
                tensors.front().sizes(), " and ", tensor.sizes());
  }
}

inline void check_pairs(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                        const char* what) {
  TORCH_CHECK(outputs.size() == inputs.size(), "tributary: ", what, " needs as many outputs as inputs; it got ",
              outputs.size(), " and ", inputs.size());
}

}  // namespace tributary::torch
