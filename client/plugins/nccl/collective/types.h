#pragma once
// Translates NCCL's element types and operators into libtributary's.
#include <cstddef>
#include <optional>

#include "client/plugins/nccl/abi/base.h"
#include "tributary/tributary.h"

namespace tributary::nccl {

/// nullopt for a type that libtributary does not reduce, or that may have another format in the calling library.
[[nodiscard]] std::optional<tributary_dtype> to_dtype(abi::DataType type) noexcept;
[[nodiscard]] std::optional<tributary_op> to_op(abi::RedOp op) noexcept;
[[nodiscard]] std::size_t size_of(tributary_dtype dtype) noexcept;

}  // namespace tributary::nccl
