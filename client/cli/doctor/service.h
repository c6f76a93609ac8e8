#pragma once
// The state of the manager and its aggregators, as this host can see it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/doctor/finding.h"
#include "client/cli/manager/access.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::cli::doctor {

/// The difference of the manager's clock from this host's clock: ahead by `seconds`, with an error of up to `within`.
struct ClockSkew {
  double seconds = 0;
  double within = 0;
};

struct ServiceReport {
  std::string url;      // empty: no manager is configured
  std::string trouble;  // the reason why the manager gave no answer; empty: it answered
  std::string version;
  std::optional<ClockSkew> clock;  // nullopt: the manager is of an older version
  struct Aggregator {
    std::string name, state, data;
    std::string trouble;       // reason why this host could not connect to the aggregator; empty: it connected
    std::vector<Endpoint> at;  // the addresses for data
    Endpoint http;
    std::string untried;                        // transport of this host's ranks, if the doctor tried no TCP connection
    std::uint64_t line_rate = 0;                // in bits per second; 0: not known
    std::uint32_t mtu_here = 0, mtu_there = 0;  // 0: not known
  };
  std::vector<Aggregator> aggregators;
};

/// Asks the manager, and connects once to each address of each aggregator.
[[nodiscard]] ServiceReport ask_service(const ManagerOptions& options);
[[nodiscard]] Findings check_service(const ServiceReport& report);

}  // namespace tributary::cli::doctor
