#pragma once
// The commands `tributary tenants`, `tributary reserve` and `tributary reservations`: the rules for tenants.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Each adds a command with its subcommands. It sets `action` to the function that the line chooses.
void describe_tenants(CLI::App& app, std::function<int()>& action);
void describe_reserve(CLI::App& app, std::function<int()>& action);
void describe_reservations(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
