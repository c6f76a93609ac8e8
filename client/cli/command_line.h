#pragma once
// The command line as a whole: its commands and their options.
#include <string>
#include <vector>

namespace tributary::cli {

/// Takes `arguments` without the program's name. Returns the exit code of the process.
[[nodiscard]] int run_command_line(std::vector<std::string> arguments);

}  // namespace tributary::cli
