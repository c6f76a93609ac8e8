#pragma once
// Rank 0's decisions for all ranks once they have come, and how it tells them.
#include <optional>
#include <string>

#include "client/collectives/hosts/host_map.h"
#include "client/communicator/membership.h"
#include "client/communicator/settings.h"
#include "client/recovery/coordinator.h"
#include "client/tuning/policy.h"

namespace tributary::client {

struct Welcome {
  tuning::Policy policy{};  // the policy of the whole group
  bool local = false;       // all ranks share memory
  struct Hosts {
    hosts::HostMap map;
    std::uint16_t leaders_port = 0;  // at rank 0
  };
  std::optional<Hosts> hosts{};
};

/// Returns the content of the frame to `rank`: the welcome, and where the rank's usual peers are.
[[nodiscard]] std::string encode(const Welcome& welcome, const Directory& directory, std::uint32_t rank);
/// Takes the members into `membership`. Errc::corrupt: rank 0 sent something malformed.
[[nodiscard]] Result<Welcome> decode_welcome(const std::string& body, Membership& membership, std::uint32_t nranks);

/// Returns rank 0's choice, which depends on where the ranks are. Ranks with the same address share its cores; the
/// topology says between which of them there are links.
[[nodiscard]] tuning::Policy policy_for(const CommunicatorSettings& settings, const Directory& directory,
                                        const tuning::TreeShape& trees = {});

/// Returns the figures behind policy_for().
[[nodiscard]] tuning::Figures figures_for(const CommunicatorSettings& settings, const Directory& directory,
                                          const tuning::TreeShape& trees);

/// Returns the path that the first commit will name.
enum class FirstPath : std::uint8_t { between_ranks_or_tree, local, by_hosts };
/// Returns the settings of rank 0's part. `between`: what the leaders' communicator tells, if there is one.
[[nodiscard]] CoordinatorSettings coordinator_settings(const CommunicatorSettings& settings, const Directory& directory,
                                                       FirstPath path, const std::string& between);

}  // namespace tributary::client
