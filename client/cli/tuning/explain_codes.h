#pragma once
// The part of `tributary explain` for the codes of reasons (tributary/protocol/reason.h).
#include "tributary/protocol/reason.h"

namespace tributary::cli {

/// Lists all codes; returns the exit code of the process.
[[nodiscard]] int list_codes(bool json);
/// Explains one code; returns the exit code of the process.
[[nodiscard]] int explain_code(Reason reason, bool json);

}  // namespace tributary::cli
