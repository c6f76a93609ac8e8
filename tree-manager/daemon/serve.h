#pragma once
// The life of the daemon: opens its state, and serves until a signal ends it.
#include <functional>

#include "tree-manager/settings/settings.h"

namespace tributary::manager {

/// Reads the settings again, for SIGHUP.
using ReadSettings = std::function<Result<Settings>()>;

/// Returns after SIGTERM or SIGINT, or with the error that kept the manager from starting.
[[nodiscard]] Status serve(const Settings& settings, const ReadSettings& read_again);

}  // namespace tributary::manager
