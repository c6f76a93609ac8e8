#pragma once
// The planner makes one tree for each lane from a fabric, its load and the members of a group. Each kind of fabric has
// one strategy, which is made once for a topology; planning itself is a pure function.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree-manager/planner/addresses.h"
#include "tree-manager/planner/tree.h"
#include "tree-manager/topology/topology.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::manager {

/// The load that one group at full rate puts on a resource, in whole numbers, so that adding and taking away are exact.
/// A lane puts its share of kFullRate on every resource that it crosses. It is divisible by 1 to 16.
inline constexpr std::uint64_t kFullRate = 720720;
/// Returns the load of a lane with this weight; `sum` is the sum of all lanes' weights.
[[nodiscard]] constexpr std::uint64_t lane_load(std::uint32_t weight, std::uint32_t sum) noexcept {
  TRIBUTARY_ASSERT(sum > 0, "a lane of weight {} is one of lanes that weigh nothing", weight);
  return kFullRate * weight / sum;
}

/// The load that is already allotted to other groups. A resource of rate r and load l serves one more full-rate flow at
/// r / (l / kFullRate + 1), because flows share fairly.
struct FabricLoad {
  std::vector<std::uint64_t> uplinks;  // index: the strategy's own number; empty: no load
  // The key is the host's name for its first interface; further interfaces have their own names (load_name() in
  // sites.h).
  std::unordered_map<std::string, std::uint64_t> hosts;
  std::unordered_map<std::string, std::uint64_t> aggregators;
};

struct PlanAggregator {
  std::string name;
  std::uint64_t incarnation = 0;
  std::string host;
  DataAddresses data;
  std::uint64_t memory_free_bytes = 0;
  std::uint32_t children_max = kChildrenMax;
  std::uint64_t line_rate_bits_per_second = 0;    // 0: the rate of its host's links
  std::string unusable;                           // reason not to use it, such as "draining"; empty: it may be used
  std::uint32_t data_changes = 0;                 // number of changes of this incarnation's set of live addresses
  PacketSecurity security = PacketSecurity::off;  // the least security of the groups that it serves
};

class AggregatorIndex;

struct PlanRequest {
  std::span<const std::string> hosts;  // index: rank
  std::span<const PlanAggregator> aggregators;
  std::uint32_t lanes = 1;         // wanted number; fewer if there is no room for all; 0: as many as save time
  bool lane_weights = false;       // lanes may carry unequal shares
  std::string_view rail{};         // rail on which all members have their device; empty: lanes take all rails in turn
  std::uint32_t window = 0;        // number of segments in flight on each lane
  bool window_is_for_all = false;  // `window` is for a whole link: lanes and an aggregator's children share it
  std::uint32_t segment_bytes = 0;
  std::uint32_t levels_max = kTreeLevelsMax;
  std::uint32_t levels = 0;                     // exact number; 0: the number with the shortest estimated time
  std::uint64_t operation_bytes = 25ULL << 20;  // bytes for which the time is estimated; the default is DDP's bucket
  // The rate of each member's host, used if no topology gives rates and every aggregator has a rate. 0: unknown.
  std::uint64_t link_rate_bits_per_second = 0;
  std::span<const std::uint32_t> avoided{};       // numbers of aggregators that this group saw fail
  std::span<const std::uint32_t> reserved{};      // numbers of aggregators that other holders have reserved, sorted
  PacketSecurity security = PacketSecurity::off;  // the group's security
  // The index that Fabric::index() made for `aggregators`, for many plans; nullptr: the planner makes one.
  const AggregatorIndex* index = nullptr;

  [[nodiscard]] bool is_reserved(std::uint32_t aggregator) const {
    return std::ranges::binary_search(reserved, aggregator);
  }
  /// Returns whether the aggregator refuses groups with as little security as this one has.
  [[nodiscard]] bool is_stricter(std::uint32_t aggregator) const { return aggregators[aggregator].security > security; }
};

/// A group's trees that are in use.
struct TreesInUse {
  std::span<const LaneTree> lanes;
  std::span<const std::string> hosts;                               // by rank
  std::string_view rail{};                                          // see PlanRequest
  std::uint64_t link_rate_bits_per_second = 0;                      // see PlanRequest
  std::function<std::uint64_t(const std::string&)> line_rate_of{};  // an aggregator's rate; 0: the rate of its host
};

struct Plan {
  std::vector<LaneTree> lanes;   // empty: no tree is possible
  std::string reason;            // reason if there is no tree, or fewer lanes than wanted; else empty
  double estimated_seconds = 0;  // time of one operation of operation_bytes over all lanes
  std::uint32_t window = 0;      // window of each lane without one of its own; the greatest of all
  PathRates rates{};             // zeros if the fabric's rates are not known or there is no tree
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  /// Returns whether the topology gives the rates. Otherwise the rates of the request are used, or assumed ones.
  [[nodiscard]] virtual bool knows_rates() const = 0;
  /// Returns whether the host has a place in the fabric.
  [[nodiscard]] virtual bool knows_host(const std::string& host) const = 0;
  /// Returns the rate of all links of a host together, in bits per second; 0 for a host without a place.
  [[nodiscard]] virtual std::uint64_t host_rate(const std::string& host) const = 0;
  /// Returns the number of the address that a host's aggregators use for lanes of this route (address_for_lane()).
  [[nodiscard]] virtual std::uint32_t address_number(const std::string& host, std::uint32_t route) const = 0;
  /// Sorts aggregators for plans on this fabric.
  [[nodiscard]] virtual std::shared_ptr<const AggregatorIndex> index(
      std::span<const PlanAggregator> aggregators) const = 0;
  /// Makes the same plan for the same input. Any thread may call it.
  [[nodiscard]] virtual Plan plan(const PlanRequest& request, const FabricLoad& load) const = 0;
  /// Returns the rates of these trees beside all other load in `load`, which includes their own load; zeros: not known.
  [[nodiscard]] virtual PathRates rates(const TreesInUse& trees, const FabricLoad& load) const = 0;
  /// Adds the load of these trees on links, hosts and aggregators.
  virtual void add(FabricLoad& load, std::span<const LaneTree> lanes, std::span<const std::string> hosts) const = 0;
  /// Takes away the load that add() has added for these trees.
  virtual void remove(FabricLoad& load, std::span<const LaneTree> lanes, std::span<const std::string> hosts) const = 0;
};

[[nodiscard]] std::unique_ptr<const Fabric> make_fabric(const Topology& topology);

}  // namespace tributary::manager
