#pragma once
// The command line of `tributary explain`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_explain(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
