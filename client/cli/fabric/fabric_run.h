#pragma once
// Measures the ways between all hosts of a job: `tributary doctor --fabric`, which must run on each of them.
#include <optional>
#include <string>

#include "client/cli/fabric/pair_record.h"
#include "client/cli/perf/launch.h"
#include "client/cli/perf/meet.h"
#include "tributary/protocol/error.h"

namespace tributary::cli::fabric {

/// Every rank of the job calls this. The first rank of each host measures for its host. Returns the report on rank 0,
/// nullopt on all other ranks.
[[nodiscard]] Result<std::optional<FabricReport>> run_fabric(const Launch& launch, const MeetWish& wish);

}  // namespace tributary::cli::fabric
