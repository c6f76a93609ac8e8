#pragma once
// The places of a job, as the manager knows them: the aggregators of its trees, and the hosts of its ranks.
#include <string>
#include <vector>

#include "client/cli/manager/access.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

struct JobPlaces {
  struct Aggregator {
    std::string name;
    std::string http;  // its address for pages
  };
  std::vector<Aggregator> aggregators;
  std::vector<std::vector<std::string>> hosts;  // by group, by member
};
/// Asks the manager. Errc::bad_config: no manager is given; other errors: it did not answer as expected.
[[nodiscard]] Result<JobPlaces> ask_places(const ManagerOptions& options, const std::string& job);

}  // namespace tributary::cli
