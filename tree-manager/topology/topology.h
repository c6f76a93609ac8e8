#pragma once
// The fabric as the operator describes it: hosts, switches, links with rates, and where aggregators stand. Pure data;
// the planner's strategies give it meaning.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::manager {

enum class FabricKind : std::uint8_t {
  flat,            // every host reaches every other at one assumed rate
  fat_tree,        // switches on levels, links between levels
  nested,          // places within places (rack, pod, cluster), each with one uplink; a fat-tree of one switch a place
  rail_optimised,  // a fat-tree whose switches of level 1 belong to rails; a host has an interface on each rail
  dragonfly,       // groups of switches that are linked with one another, and groups linked with groups
  dragonfly_plus,  // the same, and each group is a fat-tree of two levels
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
  std::uint32_t level = 1;         // 1: where worker hosts attach
  std::uint32_t rail = kUnnamed;   // index into rails; unnamed: it carries every rail
  std::uint32_t group = kUnnamed;  // the group of a dragonfly's switch, an index into groups
};

/// A cable, or several: full duplex, `rate` in each direction.
struct Link {
  enum class End : std::uint8_t { host, fabric_switch };
  End from_kind = End::host;
  std::uint32_t from = 0;  // index into hosts or switches; for switches of two levels the lower one
  std::uint32_t to = 0;    // index into switches
  std::uint64_t rate_bits_per_second = 0;
  // Index into interfaces, for a host's link. Links of a host with one name, or without a name, are one interface, a
  // bond; with rails, those to one rail.
  std::uint32_t interface = kUnnamed;
};

/// An aggregator that registers under this name stands on this host, whatever it says itself.
struct AggregatorSite {
  std::string name;
  std::string host;
  std::optional<std::uint64_t> line_rate_bits_per_second;  // takes the place of the rate that it registers with
};

struct Topology {
  FabricKind fabric = FabricKind::flat;
  std::uint64_t assumed_rate_bits_per_second = kAssumedRateDefault;  // flat: the rate of every host's link
  std::vector<std::string> hosts;
  std::vector<SwitchNode> switches;
  std::vector<Link> links;
  std::vector<std::string> rails;       // in the order of their first switches: lane i goes by rail i mod n
  std::vector<std::string> groups;      // the groups of a dragonfly
  std::vector<std::string> interfaces;  // each name once
  std::vector<AggregatorSite> aggregators;
  std::string text;  // as it was written; empty for the default
};

/// Checks everything that a strategy relies on: names are unique and known, every host has a link, links join
/// neighbouring kinds of nodes, the fabric, or each of its rails, is connected. Errc::bad_config names `file`, line,
/// key and what is accepted.
[[nodiscard]] Result<Topology> parse_topology(const std::string& text, const std::string& file);
/// Reads and parses the file; Errc::bad_config for a file that cannot be read, too.
[[nodiscard]] Result<Topology> load_topology(const std::string& path);

[[nodiscard]] nlohmann::json to_json(const Topology& topology);

}  // namespace tributary::manager
