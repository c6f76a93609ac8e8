#pragma once
// tributary doctor: checks this host, and says how to mend what does not work.
#include "client/cli/manager/access.h"

namespace tributary::cli {

/// Returns the exit code of the process: kExitFailed if something needs mending. The limit of `options` holds for the
/// manager, and again for each aggregator.
[[nodiscard]] int examine_host(const ManagerOptions& options);

}  // namespace tributary::cli
