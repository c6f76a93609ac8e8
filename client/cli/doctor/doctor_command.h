#pragma once
// Runs `tributary doctor`: it checks this host and the service, and says how to mend its findings.
#include <string>
#include <vector>

#include "client/cli/manager/access.h"
#include "client/cli/perf/meet.h"

namespace tributary::cli {

/// The measurements that the doctor makes besides its checks.
struct DoctorMeasures {
  bool aggregators = false;          // true: it measures the ways to aggregators
  std::vector<std::string> names{};  // names of these aggregators; empty: the active ones
  bool fabric = false;               // true: it measures the hosts of this job with each other
  MeetWish meeting{};                // way in which these hosts meet
};

/// Returns the exit code of the process: kExitFailed if a finding is bad. The limit of `options` holds for the manager,
/// and separately for each aggregator.
[[nodiscard]] int examine_host(const ManagerOptions& options, const DoctorMeasures& measures);

}  // namespace tributary::cli
