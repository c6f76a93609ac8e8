#pragma once
// tributary doctor: checks this host and the service, and says how to mend what it finds.
#include "client/cli/manager/access.h"

namespace tributary::cli {

/// Returns the exit code of the process: kExitFailed if something is bad. The limit of `options` holds for the
/// manager, and again for each aggregator.
[[nodiscard]] int examine_host(const ManagerOptions& options);

}  // namespace tributary::cli
