#include "client/cli/manager/group_view.h"

#include <nlohmann/json.hpp>

namespace tributary::cli {

using nlohmann::json;

void Traffic::add(const json& group) {
  const auto told = group.find("traffic");
  if (told == group.end()) return;
  in_network += told->at("bytes_in_network").get<std::uint64_t>();
  between_ranks += told->at("bytes_between_ranks").get<std::uint64_t>();
  in_shared_memory += told->at("bytes_in_shared_memory").get<std::uint64_t>();
}

std::uint64_t processes_of(const json& group) {
  return group.value("processes", group.at("ranks").get<std::uint64_t>());
}

std::string path_of(const json& group) {
  std::string path = group.at("path");
  const auto told = group.find("traffic");
  if (path != "in-network" || told == group.end()) return path;
  return told->at("bytes_in_network").get<std::uint64_t>() > 0 ? path : "ready";
}

}  // namespace tributary::cli
