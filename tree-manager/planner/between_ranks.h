#pragma once
// The rates that a group's ranks get among themselves, without trees. A ring crosses the uplink of a rack with few
// edges if neighbours share the rack. Other algorithms cross it with all ranks of the rack at once, in some of their
// steps (client/schedule): an oversubscribed uplink slows down these steps.
#include <cstdint>
#include <span>
#include <vector>

#include "tributary/protocol/descriptor.h"

namespace tributary::manager {

/// The links by which ranks reach one another: each host has one, and then a chain of uplinks leads to the root.
struct RankLinks {
  struct Link {
    std::uint64_t others = 0;  // load of other groups, in kFullRate units
    std::uint64_t bits_per_second = 0;
  };
  std::span<const std::uint32_t> host_of_rank;
  std::vector<Link> hosts;
  std::vector<std::uint32_t> uplink_of_host;  // number of its first uplink; the numbers go up towards the root
  std::vector<Link> uplinks;
  std::vector<std::uint32_t> parent_of_uplink;
};

/// Sets the rates `ranks`, `doubling`, `halving` and `spread`. They are 0 if all ranks share a host or if the rate of
/// a link that they use is not known.
void set_rates_between(const RankLinks& links, PathRates& rates);

}  // namespace tributary::manager
