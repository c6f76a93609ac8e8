#pragma once
// The command line of `tributary top`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_top(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
