#pragma once
// Translates NCCL's element types and operators to libtributary's types and operators.
#include <cstddef>
#include <optional>

#include "client/plugins/nccl/abi/base.h"
#include "tributary/tributary.h"

namespace tributary::nccl {

/// Returns nullopt if libtributary does not reduce the type, or if the calling library may use another format for it.
[[nodiscard]] std::optional<tributary_dtype> to_dtype(abi::DataType type) noexcept;
[[nodiscard]] std::optional<tributary_op> to_op(abi::RedOp op) noexcept;
[[nodiscard]] std::size_t size_of(tributary_dtype dtype) noexcept;

}  // namespace tributary::nccl
