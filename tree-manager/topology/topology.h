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
  flat,      // every host reaches every other at one assumed rate
  fat_tree,  // switches on levels, links between levels
};
[[nodiscard]] std::string_view to_string(FabricKind kind) noexcept;

inline constexpr std::uint32_t kSwitchLevelsMax = 6;
inline constexpr std::uint64_t kAssumedRateDefault = 100'000'000'000;  // bit/s

struct SwitchNode {
  std::string name;
  std::uint32_t level = 1;  // 1: where worker hosts attach
};

/// A cable, or several: full duplex, `rate` in each direction.
struct Link {
  enum class End : std::uint8_t { host, fabric_switch };
  End from_kind = End::host;
  std::uint32_t from = 0;  // index into hosts or switches; for two switches the one on the lower level
  std::uint32_t to = 0;    // index into switches
  std::uint64_t rate_bits_per_second = 0;
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
  std::vector<AggregatorSite> aggregators;
  std::string text;  // as it was written; empty for the default
};

/// Checks everything that a strategy relies on: names are unique and known, every host of a fat-tree has a link, links
/// join neighbouring kinds of nodes, the fabric is connected. Errc::bad_config names `file`, line, key and what is
/// accepted.
[[nodiscard]] Result<Topology> parse_topology(const std::string& text, const std::string& file);
/// Reads and parses the file; Errc::bad_config for a file that cannot be read, too.
[[nodiscard]] Result<Topology> load_topology(const std::string& path);

[[nodiscard]] nlohmann::json to_json(const Topology& topology);

}  // namespace tributary::manager
