#pragma once
// The command line of `tributary plan`, also of `plan --budget`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_plan(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
