#pragma once
// The command line of `tributary trace`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_trace(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
