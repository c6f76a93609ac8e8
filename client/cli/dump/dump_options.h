#pragma once
// The command line of `tributary dump`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_dump(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
