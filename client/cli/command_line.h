#pragma once
// The whole command line: its commands and their options.
#include <string>
#include <vector>

namespace tributary::cli {

/// Runs the command line. `arguments` lacks the program's name. Returns the exit code of the process.
[[nodiscard]] int run_command_line(std::vector<std::string> arguments);

}  // namespace tributary::cli
