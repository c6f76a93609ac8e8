#pragma once
#include <string>
#include <variant>
#include <vector>

#include "aggregator/daemon/settings.h"

namespace tributary::aggregator {

/// The exit codes. 64 and 78 have their meaning from sysexits.h.
enum class Exit : int { good = 0, failed = 1, usage = 64, configuration = 78 };

struct CommandLine {
  std::string config;
  bool check = false;
  bool print_config = false;
  std::vector<Override> overrides;
};

/// Returns the caller's wishes. For --help, --version and mistakes, it prints the answer and returns the exit
/// code.
[[nodiscard]] std::variant<CommandLine, Exit> read_command_line(int argc, const char* const* argv);

}  // namespace tributary::aggregator
