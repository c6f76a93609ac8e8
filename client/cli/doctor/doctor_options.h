#pragma once
// The command line of `tributary doctor`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_doctor(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
