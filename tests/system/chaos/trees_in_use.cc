#include "tests/system/chaos/trees_in_use.h"

#include <nlohmann/json.hpp>

#include "tributary/manager_client/manager_client.h"

namespace tributary::chaos {
namespace {

void collect_aggregators(const nlohmann::json& node, std::set<std::string>& names) {
  if (!node.contains("aggregator")) return;
  names.insert(node.at("aggregator").get<std::string>());
  for (const auto& child : node.at("children")) collect_aggregators(child, names);
}

/// Ranks name their jobs after their groups (chaos_rank).
std::set<std::string> groups_in_network(const RankFleet& fleet) {
  std::map<std::string, bool> everywhere;
  for (const RankState& rank : fleet.ranks()) {
    for (const GroupReport& group : rank.last.groups) {
      const auto [at, is_new] = everywhere.emplace(group.name, group.in_network);
      at->second = at->second && group.in_network;
    }
  }
  std::set<std::string> names;
  for (const auto& [name, in_network] : everywhere) {
    if (in_network) names.insert(name);
  }
  return names;
}

}  // namespace

std::map<std::size_t, std::set<std::string>> trees_in_use(const cli::LocalCluster& cluster, const RankFleet& fleet) {
  auto client = manager_client::ManagerClient::create({.url = cluster.manager_url(), .token = {}});
  const auto answer = client ? client->get("/v1/trees") : std::unexpected(client.error());
  if (!answer) return {};
  const std::set<std::string> in_network = groups_in_network(fleet);
  std::map<std::size_t, std::set<std::string>> result;
  for (const auto& tree : answer->at("trees")) {
    const auto group = tree.at("job").get<std::string>();
    if (!in_network.contains(group)) continue;
    std::set<std::string> names;
    collect_aggregators(tree.at("root"), names);
    for (std::size_t i = 0; i < cluster.aggregators(); ++i) {
      if (names.contains(cluster.name_of(i))) result[i].insert(group);
    }
  }
  return result;
}

std::uint64_t failovers_of(const std::set<std::string>& groups, const RankFleet& fleet) {
  std::uint64_t sum = 0;
  for (const RankState& rank : fleet.ranks()) {
    for (const GroupReport& group : rank.last.groups) sum += groups.contains(group.name) ? group.failovers : 0;
  }
  return sum;
}

}  // namespace tributary::chaos
