#include "client/cli/manager/group_view.h"

#include <nlohmann/json.hpp>

namespace tributary::cli {

using nlohmann::json;

namespace {

constexpr std::size_t kLateLines = 4;

}  // namespace

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

std::vector<std::string> late_lines(const json& group) {
  std::vector<std::string> lines;
  const json& late = group.value("late", json::array());
  for (const json& one : late) {
    const auto count = [&one](const char* name) { return one.at(name).get<std::uint64_t>(); };
    if (lines.size() == kLateLines) {
      lines.back() += " (and " + std::to_string(late.size() - kLateLines) + " more)";
      break;
    }
    std::string line = "group " + std::to_string(group.at("group").get<std::uint64_t>()) + ": rank " +
                       std::to_string(count("rank")) + " on " + one.at("host").get<std::string>() + " is late by " +
                       std::to_string(count("lag_milliseconds")) + " ms";
    if (const auto behind = count("operations_behind"); behind > 0) {
      line += ", " + std::to_string(behind) + (behind == 1 ? " operation behind" : " operations behind");
    }
    line += ", for " + std::to_string(count("late_milliseconds") / 1000) + " s";
    const std::string_view cause = row_of(late_cause_from_string(one.value("cause", ""))).text;
    lines.push_back(cause.empty() ? line : line + ": " + std::string(cause));
  }
  return lines;
}

std::string path_of(const json& group) {
  std::string path = group.at("path");
  const auto told = group.find("traffic");
  if (path != "in-network" || told == group.end()) return path;
  return told->at("bytes_in_network").get<std::uint64_t>() > 0 ? path : "ready";
}

}  // namespace tributary::cli
