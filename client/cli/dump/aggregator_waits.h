#pragma once
// The children for which the aggregators of a job wait, as their pages say.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/cli/manager/job_places.h"

namespace tributary::cli {

/// A lane with a segment that waits.
struct AggregatorWait {
  std::string aggregator;
  std::uint64_t group = 0;  // number of the group at the manager
  std::uint32_t lane = 0;
  double seconds = 0;                  // time since the segment's first contribution
  std::vector<std::string> waits_for;  // "rank 7" or "aggregator leaf-2"
};

struct AggregatorWaits {
  std::vector<AggregatorWait> lanes;
  std::vector<std::string> silent;  // sentences about aggregators without an answer
};

/// Asks all aggregators of the job at the same time.
[[nodiscard]] AggregatorWaits ask_what_aggregators_wait_for(std::vector<JobPlaces::Aggregator> aggregators,
                                                            const std::string& job);
/// Adds the lanes of a page /lanes that wait. Errc::bad_argument: the page has another form.
[[nodiscard]] Status add_waits(AggregatorWaits& waits, const std::string& page, const std::string& job);
/// Returns a line for each lane that waits for so long that it is no usual pause.
[[nodiscard]] std::string to_text(const AggregatorWaits& waits);
[[nodiscard]] nlohmann::json to_json(const AggregatorWaits& waits);

}  // namespace tributary::cli
