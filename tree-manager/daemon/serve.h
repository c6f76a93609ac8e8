#pragma once
// The life of the daemon: opens its state, serves until it is told to stop.
#include <functional>

#include "tree-manager/settings/settings.h"

namespace tributary::manager {

/// Reads the settings anew, for SIGHUP.
using ReadSettings = std::function<Result<Settings>()>;

/// Returns after SIGTERM or SIGINT, or with the error that kept the manager from starting.
[[nodiscard]] Status serve(const Settings& settings, const ReadSettings& read_again);

}  // namespace tributary::manager
