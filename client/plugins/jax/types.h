#pragma once

#include <cstddef>
#include <optional>

#include "client/plugins/jax/abi.h"
#include "tributary/tributary.h"

namespace tributary::jax {

/// A type of MPI in libtributary's words.
struct Element {
  tributary_dtype dtype;
  std::size_t parts;  // number of dtype's elements: 2 for complex numbers
  std::size_t bytes;
};

/// Returns nothing for types that XLA does not use.
[[nodiscard]] std::optional<Element> element_of(Datatype type);
[[nodiscard]] std::optional<tributary_op> operation_of(Op op);

}  // namespace tributary::jax
