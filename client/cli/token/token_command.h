#pragma once
// The command `tributary token`: it makes, shows, renews and revokes identity tokens.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command and its subcommands. Sets `action` to the function that the line chooses.
void describe_token(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
