#pragma once
// Runs `tributary doctor`: it checks this host and the service, and says how to mend its findings.
#include "client/cli/manager/access.h"

namespace tributary::cli {

/// Returns the exit code of the process: kExitFailed if a finding is bad. The limit of `options` holds for the manager,
/// and separately for each aggregator.
[[nodiscard]] int examine_host(const ManagerOptions& options);

}  // namespace tributary::cli
