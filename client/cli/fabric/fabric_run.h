#pragma once
// Measures all hosts of a job against each other: tributary doctor --fabric, started on each of them.
#include <optional>
#include <string>

#include "client/cli/fabric/pair_record.h"
#include "client/cli/perf/launch.h"
#include "client/cli/perf/meet.h"
#include "tributary/protocol/error.h"

namespace tributary::cli::fabric {

/// Every rank of the job calls it. The first rank of each host measures for it. Returns the report on rank 0, nullopt on
/// the others.
[[nodiscard]] Result<std::optional<FabricReport>> run_fabric(const Launch& launch, const MeetWish& wish);

}  // namespace tributary::cli::fabric
