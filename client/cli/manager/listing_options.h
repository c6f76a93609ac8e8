#pragma once
// The command lines of `tributary status`, `aggregators`, `groups`, `trees` and `drain`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the commands that show what the manager knows.
void describe_listings(CLI::App& app, std::function<int()>& action);
/// Adds `drain`.
void describe_drain(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
