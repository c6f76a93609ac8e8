#pragma once
// The command line as a whole: which commands there are and what they take.
#include <string>
#include <vector>

namespace tributary::cli {

/// `arguments` without the program's name. Returns what the process is to end with.
[[nodiscard]] int run_command_line(std::vector<std::string> arguments);

}  // namespace tributary::cli
