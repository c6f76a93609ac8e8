#pragma once

#include <string_view>

#include "tributary/tributary.h"

namespace tributary::jax {

/// Keeps "CALL: SENTENCE" as the thread's last error, and returns the error class. MPI has no other way to pass a
/// sentence on: XLA asks for it with MPI_Error_string, on the same thread, at once.
int fail(int error_class, const char* call, std::string_view sentence);

/// Returns kSuccess, or keeps libtributary's sentence of the failed call. `comm` may be nullptr.
int outcome(tributary_status status, const char* call, const tributary_comm* comm);

/// Returns the thread's last error; "" if it has none.
[[nodiscard]] const char* last_sentence();

}  // namespace tributary::jax
