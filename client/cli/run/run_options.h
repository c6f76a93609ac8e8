#pragma once
// The command line of `tributary run`.
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command. `command`: the words behind "--", which are read before the options are.
void describe_run(CLI::App& app, const std::vector<std::string>& command, std::function<int()>& action);

}  // namespace tributary::cli
