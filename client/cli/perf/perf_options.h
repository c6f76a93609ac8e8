#pragma once
// The command line of `tributary perf`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_perf(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
