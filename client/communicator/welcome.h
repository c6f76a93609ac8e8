#pragma once
// Rank 0's decisions for all ranks after they have come, and the message that carries the decisions.
#include <optional>
#include <string>
#include <vector>

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
    std::uint16_t leaders_port = 0;  // port at rank 0's address
  };
  std::optional<Hosts> hosts{};
  std::vector<NeighbourProcess> neighbours{};  // the processes that the receiver sees
};

/// Returns the content of the frame to `rank`: the welcome, and the addresses of the rank's usual peers.
[[nodiscard]] std::string encode(const Welcome& welcome, const Directory& directory, std::uint32_t rank);
/// Reads a welcome, and adds its members to `membership`. Errc::corrupt: rank 0's message is malformed.
[[nodiscard]] Result<Welcome> decode_welcome(const std::string& body, Membership& membership, std::uint32_t nranks);

/// Lets this rank look at these processes when others ask.
void look_at(const std::vector<NeighbourProcess>& processes, const CommunicatorSettings& settings);

/// Returns the policy. Rank 0 chooses it by the places of the ranks: ranks with one address share the cores of one
/// host, and the topology says which hosts have links between them. `staging_gbytes`: see tuning::Figures.
[[nodiscard]] tuning::Policy policy_for(const CommunicatorSettings& settings, const Directory& directory,
                                        const tuning::TreeShape& trees = {}, double staging_gbytes = 0);

/// Returns the figures from which policy_for() makes the policy.
[[nodiscard]] tuning::Figures figures_for(const CommunicatorSettings& settings, const Directory& directory,
                                          const tuning::TreeShape& trees, double staging_gbytes);

/// The path that the first commit names.
enum class FirstPath : std::uint8_t { between_ranks_or_tree, local, by_hosts };
/// Returns the settings of rank 0's coordinator. `between`: encode_between() of the leaders' communicator, if it
/// exists.
[[nodiscard]] CoordinatorSettings coordinator_settings(const CommunicatorSettings& settings, const Directory& directory,
                                                       FirstPath path, const std::string& between);

}  // namespace tributary::client
