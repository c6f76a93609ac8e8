#pragma once
// The command `tributary topology`: it shows a fabric, compares two, and imports one from other programs.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command and its subcommands. Sets `action` to the function that the line chooses.
void describe_topology(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
