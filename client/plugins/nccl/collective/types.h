#pragma once
// NCCL's element types and operators in libtributary's numbers.
#include <cstddef>
#include <optional>

#include "client/plugins/nccl/abi/base.h"
#include "tributary/tributary.h"

namespace tributary::nccl {

/// Nothing for a type that libtributary does not reduce, or that may be of another format in the library that calls.
[[nodiscard]] std::optional<tributary_dtype> to_dtype(abi::DataType type) noexcept;
[[nodiscard]] std::optional<tributary_op> to_op(abi::RedOp op) noexcept;
[[nodiscard]] std::size_t size_of(tributary_dtype dtype) noexcept;

}  // namespace tributary::nccl
