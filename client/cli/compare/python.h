#pragma once
// Finds an interpreter that has PyTorch.
#include <string>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// Returns `wanted` if it has PyTorch. If `wanted` is empty, tries the active virtual environment, python3 in PATH, and
/// folders `venv` next to this program and above it. Errc::unsupported says in one line that none has PyTorch.
[[nodiscard]] Result<std::string> find_python_with_torch(const std::string& wanted);

}  // namespace tributary::cli
