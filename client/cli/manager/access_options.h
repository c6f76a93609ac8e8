#pragma once
// The options of every command that asks the manager.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "client/cli/manager/access.h"

namespace tributary::cli {

/// Adds --manager and --token-file.
void add_access(CLI::App& sub, ManagerOptions& options, const std::string& token_help = "File with a manager's token");
/// Adds --time-limit.
void add_time_limit(CLI::App& sub, ManagerOptions& options);
/// Adds --output.
void add_output_form(CLI::App& sub, ManagerOptions& options);
/// Adds --watch to a command that shows a state.
void add_watch(CLI::App& sub, ManagerOptions& options);

/// Adds all these options except --watch.
[[nodiscard]] std::shared_ptr<ManagerOptions> add_manager_options(CLI::App& sub);

}  // namespace tributary::cli
