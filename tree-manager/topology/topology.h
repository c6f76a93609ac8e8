#pragma once
// The fabric as the operator describes it: hosts, switches, links with rates, and the hosts of aggregators. It is pure
// data; the planner's strategies interpret it.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::manager {

enum class FabricKind : std::uint8_t {
  flat,            // every host reaches every other host at one assumed rate
  fat_tree,        // switches on levels, links between levels
  nested,          // nested places (rack, pod, cluster), each with one uplink: a fat-tree with one switch for a place
  rail_optimised,  // a fat-tree whose switches of level 1 belong to rails; a host has an interface on each rail
  dragonfly,       // groups of switches with links within a group and between groups
  dragonfly_plus,  // a dragonfly in which each group is a fat-tree of two levels
};
inline constexpr FabricKind kFabricKinds[] = {FabricKind::flat,      FabricKind::fat_tree,
                                              FabricKind::nested,    FabricKind::rail_optimised,
                                              FabricKind::dragonfly, FabricKind::dragonfly_plus};
[[nodiscard]] std::string_view to_string(FabricKind kind) noexcept;

inline constexpr std::uint32_t kSwitchLevelsMax = 6;
inline constexpr std::uint64_t kAssumedRateDefault = 100'000'000'000;  // bit/s
inline constexpr std::uint32_t kUnnamed = UINT32_MAX;

struct SwitchNode {
  std::string name;
  std::uint32_t level = 1;         // 1: level of switches to which hosts of ranks are cabled
  std::uint32_t rail = kUnnamed;   // index into rails; unnamed: the switch carries every rail
  std::uint32_t group = kUnnamed;  // the group of a dragonfly's switch, an index into groups
};

/// One cable or several: full duplex, with the rate in each direction.
struct Link {
  enum class End : std::uint8_t { host, fabric_switch };
  End from_kind = End::host;
  std::uint32_t from = 0;  // index into hosts or switches; of two switches, the one of the lower level
  std::uint32_t to = 0;    // index into switches
  std::uint64_t rate_bits_per_second = 0;
  // Index into interfaces, for a host's link. The links of a host with the same name, or without a name, are one
  // interface (a bond); with rails, only the links to the same rail.
  std::uint32_t interface = kUnnamed;
};

/// An aggregator that registers under this name is on this host, even if its registration names another one.
struct AggregatorSite {
  std::string name;
  std::string host;
  std::optional<std::uint64_t> line_rate_bits_per_second;  // replaces the rate in its registration
};

struct Topology {
  FabricKind fabric = FabricKind::flat;
  std::uint64_t assumed_rate_bits_per_second = kAssumedRateDefault;  // flat fabric: the rate of every host's link
  std::vector<std::string> hosts;
  std::vector<SwitchNode> switches;
  std::vector<Link> links;
  std::vector<std::string> rails;       // in the order of their first switches: lane i uses rail i mod n
  std::vector<std::string> groups;      // the groups of a dragonfly
  std::vector<std::string> interfaces;  // each name once
  std::vector<AggregatorSite> aggregators;
  std::string text;  // the document's text; empty for the default topology
};

/// Parses a topology, and checks all facts that a strategy needs: names are unique and known, every host has a link,
/// links join neighbouring kinds of nodes, and the fabric, or each of its rails, is connected. Errc::bad_config names
/// `file`, line, key and the accepted values.
[[nodiscard]] Result<Topology> parse_topology(const std::string& text, const std::string& file);
/// Reads and parses the file. It also returns Errc::bad_config for a file that cannot be read.
[[nodiscard]] Result<Topology> load_topology(const std::string& path);

[[nodiscard]] nlohmann::json to_json(const Topology& topology);

}  // namespace tributary::manager
