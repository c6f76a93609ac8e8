#pragma once
// The ranks of a job of which a trace has nothing.
#include <string>
#include <vector>

#include "client/cli/manager/job_places.h"
#include "client/cli/trace/trace_parts.h"

namespace tributary::cli {

/// Returns a sentence about the ranks of each group that are not among the traced ones, with their hosts.
[[nodiscard]] std::vector<std::string> missing_ranks(const std::vector<TracedRank>& traced, const JobPlaces& places);

}  // namespace tributary::cli
