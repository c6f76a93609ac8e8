// The program `tributary`, which runs the command line.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>

#include "client/cli/command_line.h"
#include "client/cli/terminal/exit_code.h"

int main(int argc, char** argv) {
  try {
    spdlog::set_default_logger(spdlog::stderr_logger_mt("tributary"));
    spdlog::set_pattern("tributary: %l: %v");
    spdlog::set_level(spdlog::level::warn);
    return tributary::cli::run_command_line({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tributary: %s\n", error.what());
    return tributary::cli::kExitFailed;
  }
}
