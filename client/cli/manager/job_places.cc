#include "client/cli/manager/job_places.h"

#include <nlohmann/json.hpp>
#include <set>

namespace tributary::cli {
namespace {

using nlohmann::json;

/// Adds the names of a tree's aggregators. The manager bounds the number of levels.
void add_names(std::set<std::string>& names, const json& node) {
  if (!node.contains("aggregator")) return;
  names.insert(node.at("aggregator").get<std::string>());
  for (const json& child : node.at("children")) add_names(names, child);
}

Result<JobPlaces> places_of(manager_client::ManagerClient& client, const std::string& job) {
  const auto groups = client.get("/v1/groups");
  if (!groups) return std::unexpected(groups.error());
  JobPlaces places;
  std::set<std::string> names;
  for (const json& one : groups->at("groups")) {
    if (one.at("job").get<std::string>() != job) continue;
    const auto group = client.get("/v1/groups/" + std::to_string(one.at("group").get<std::uint64_t>()));
    if (!group) continue;  // it has ended meanwhile
    places.hosts.push_back(group->at("hosts").get<std::vector<std::string>>());
    for (const json& tree : group->at("trees")) add_names(names, tree.at("root"));
  }
  if (names.empty()) return places;
  const auto aggregators = client.get("/v1/aggregators");
  if (!aggregators) return std::unexpected(aggregators.error());
  for (const json& one : aggregators->at("aggregators")) {
    const auto name = one.at("name").get<std::string>();
    if (names.contains(name)) places.aggregators.push_back({.name = name, .http = one.at("http").get<std::string>()});
  }
  return places;
}

}  // namespace

Result<JobPlaces> ask_places(const ManagerOptions& options, const std::string& job) {
  auto client = connect(options);
  if (!client) return std::unexpected(client.error());
  try {
    return places_of(*client, job);
  } catch (const json::exception& error) {
    return fail(Errc::corrupt, std::string("the manager's answer is not what this version expects: ") + error.what());
  }
}

}  // namespace tributary::cli
