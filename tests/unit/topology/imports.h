#pragma once
// Imports texts, and returns the facts of a topology that a test compares.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tree-manager/topology/import/import.h"
#include "tree-manager/topology/topology_yaml.h"

namespace tributary::manager {

inline constexpr std::uint64_t kGbit = 1'000'000'000;

/// Returns the recorded output of a real program.
inline std::string recorded(const std::string& name) {
  std::ifstream in(std::string(TRIBUTARY_RECORDED_FOLDER) + "/" + name);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

inline Imported imported(const std::string& text, const ImportOptions& options = {}) {
  auto result = import_topology({{"t", "t", text}}, options);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  if (!result) return {};
  const auto read = parse_topology(topology_yaml(result->topology), "written");
  EXPECT_TRUE(read.has_value()) << read.error().message << "\n" << topology_yaml(result->topology);
  return std::move(*result);
}

inline std::string complaint(const std::string& text, const ImportOptions& options = {}) {
  const auto result = import_topology({{"t", "t", text}}, options);
  return result ? "no complaint" : result.error().message;
}

/// Returns the rate of all links between two names together; 0: no link joins them.
inline std::uint64_t rate_between(const Topology& topology, const std::string& from, const std::string& to) {
  std::uint64_t rate = 0;
  for (const Link& link : topology.links) {
    const bool host = link.from_kind == Link::End::host;
    const std::string& lower = host ? topology.hosts[link.from] : topology.switches[link.from].name;
    if (lower == from && topology.switches[link.to].name == to) rate += link.rate_bits_per_second;
  }
  return rate;
}

/// Returns the level of a switch; 0: the topology has no switch of this name.
inline std::uint32_t level_of(const Topology& topology, const std::string& name) {
  const auto found = std::ranges::find(topology.switches, name, &SwitchNode::name);
  return found == topology.switches.end() ? 0 : found->level;
}

}  // namespace tributary::manager
