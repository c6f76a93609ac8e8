#pragma once

#include <cstddef>
#include <optional>

#include "client/plugins/jax/abi.h"
#include "client/plugins/jax/types.h"
#include "tributary/tributary.h"

namespace tributary::jax {

struct Reduction {
  Element element;
  tributary_op op;
  std::size_t count;  // number of MPI's elements
};

/// Returns nothing after fail(): a type or an operation that XLA does not use, or a wrong count.
[[nodiscard]] std::optional<Reduction> reduction_of(const char* call, int count, Datatype type, Op op, int& code);

/// Blocks until the result is there, like MPI's calls. `send` may be `receive`.
tributary_status all_reduce(const Reduction& reduction, const void* send, void* receive, tributary_comm* comm);
tributary_status reduce_scatter(const Reduction& reduction, const void* send, void* receive, tributary_comm* comm);

}  // namespace tributary::jax
