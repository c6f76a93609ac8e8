#pragma once
// `tributary token`: makes, shows, renews and revokes identity tokens.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command and its subcommands. `action` becomes what the line asks for.
void describe_token(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
