#include "client/cli/dump/aggregator_waits.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "client/cli/dump/verdict.h"
#include "client/cli/manager/aggregator_pages.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

struct Asked {
  JobPlaces::Aggregator aggregator;
  Result<AggregatorPage> page = fail(Errc::unreachable, "");
};

}  // namespace

Status add_waits(AggregatorWaits& waits, const std::string& page, const std::string& job) {
  try {
    const json document = json::parse(page);
    std::vector<AggregatorWait> lanes;
    for (const json& lane : document.at("lanes")) {
      if (lane.at("job").get<std::string>() != job) continue;
      AggregatorWait wait{.aggregator = document.at("aggregator").get<std::string>(),
                          .group = lane.at("group").get<std::uint64_t>(),
                          .lane = lane.at("lane").get<std::uint32_t>(),
                          .seconds = lane.at("waits_seconds").get<double>(),
                          .waits_for = lane.at("waits_for").get<std::vector<std::string>>()};
      if (!wait.waits_for.empty()) lanes.push_back(std::move(wait));
    }
    std::ranges::move(lanes, std::back_inserter(waits.lanes));
  } catch (const json::exception& error) {
    return fail(Errc::bad_argument, std::string("its answer to GET /lanes cannot be read: ") + error.what());
  }
  return {};
}

AggregatorWaits ask_what_aggregators_wait_for(std::vector<JobPlaces::Aggregator> aggregators, const std::string& job) {
  std::vector<Asked> all;
  for (auto& aggregator : aggregators) all.push_back({.aggregator = std::move(aggregator)});
  for_all(all, [](Asked& asked) { asked.page = page_of(asked.aggregator.http, "/lanes"); });
  AggregatorWaits waits;
  for (const Asked& asked : all) {
    Status added;
    if (asked.page) {
      added = add_waits(waits, asked.page->body, job);
    } else {
      added = std::unexpected(asked.page.error());
    }
    if (!added)
      waits.silent.push_back("aggregator " + asked.aggregator.name + " (" + asked.aggregator.http +
                             "): " + added.error().message);
  }
  return waits;
}

std::string to_text(const AggregatorWaits& waits) {
  std::string text;
  for (const AggregatorWait& wait : waits.lanes) {
    if (wait.seconds < kLateAfterSeconds) continue;
    std::string names;
    for (const std::string& name : wait.waits_for) names += (names.empty() ? "" : ", ") + name;
    text += fmt::format("aggregator {}, lane {} of group {}: a segment has waited for {} for {:.1f} s\n",
                        printable(wait.aggregator), wait.lane, wait.group, printable(names), wait.seconds);
  }
  return text;
}

json to_json(const AggregatorWaits& waits) {
  json all = json::array();
  for (const AggregatorWait& wait : waits.lanes) {
    all.push_back({{"aggregator", wait.aggregator},
                   {"group", wait.group},
                   {"lane", wait.lane},
                   {"seconds", wait.seconds},
                   {"waits_for", wait.waits_for}});
  }
  return all;
}

}  // namespace tributary::cli
