#pragma once
// The input of a pre-multiplied sum: the call's own thread multiplies before the call begins. Every path then carries an
// ordinary sum of the products, so the bits of the products depend on no path, and no other call pays for them.
#include <cstddef>
#include <memory>

#include "client/api/arguments.h"

namespace tributary::client {

/// Multiplies the call's input by its factor, and makes the products the input. They go into the result's buffer if
/// they fit there, else into the returned memory, which must live until the call has ended; nullptr: it is not needed.
/// The buffers are in host memory. Throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<std::byte[]> multiply_input(CheckedCall& call);

}  // namespace tributary::client
