#pragma once
// The command `tributary top`: it shows groups and aggregators continuously.
#include "client/cli/manager/access.h"

namespace tributary::cli {

/// Shows the cluster until the user presses q. `interval_seconds`: the time between two looks. Returns the exit code of
/// the process.
[[nodiscard]] int top(const ManagerOptions& options, double interval_seconds);

}  // namespace tributary::cli
