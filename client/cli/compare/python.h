#pragma once
// Looks for an interpreter that has PyTorch.
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// Returns `wanted` if it has PyTorch. If `wanted` is empty, looks at the active virtual environment, at python3 in
/// PATH, and at folders `venv` beside and above this program. Errc::unsupported says in one line that there is none.
[[nodiscard]] Result<std::string> find_python_with_torch(const std::string& wanted);

}  // namespace tributary::cli
