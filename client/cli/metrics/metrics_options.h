#pragma once
// The command line of `tributary metrics`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_metrics(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
