#pragma once
// The command line of `tributary verify-bits`.
#include <functional>

namespace CLI {
class App;
}

namespace tributary::cli {

/// Adds the command.
void describe_verify_bits(CLI::App& app, std::function<int()>& action);

}  // namespace tributary::cli
