#pragma once
// `tributary topology`: shows the fabric in use or in a file, compares two, and imports one from other programs.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command and its subcommands. `action` becomes what the line asks for.
void describe_topology(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
