#pragma once
// tributary doctor: what this host can do for Tributary, and what to do where it cannot.
#include "client/cli/manager/access.h"

namespace tributary::cli {

/// Returns what the process is to end with: kExitFailed where something is to be mended. The limit of `options` holds
/// for the manager, and again for each aggregator.
[[nodiscard]] int examine_host(const ManagerOptions& options);

}  // namespace tributary::cli
