#include "tree-manager/planner/explain.h"

#include <algorithm>
#include <map>

#include "service-kit/units.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

struct Census {
  std::map<std::string, std::uint32_t> unusable;  // key: reason
  std::uint32_t elsewhere = 0;
  std::uint32_t too_small = 0;
  std::uint32_t usable = 0;
  std::uint64_t memory_free_max = 0;
};

Census count(const DomainTree& domains, const PlanRequest& request) {
  Census census;
  for (std::uint32_t i = 0; i < request.aggregators.size(); ++i) {
    const PlanAggregator& aggregator = request.aggregators[i];
    const std::uint32_t fits = children_that_fit(aggregator.memory_free_bytes, request.window, request.segment_bytes);
    if (std::ranges::find(request.avoided, i) != request.avoided.end()) {
      ++census.unusable["avoided because this group saw it fail"];
    } else if (request.is_reserved(i)) {
      ++census.unusable["reserved for other tenants"];
    } else if (request.is_stricter(i)) {
      ++census
            .unusable["closed to groups with less security than '" + std::string(to_string(aggregator.security)) + "'"];
    } else if (!aggregator.unusable.empty()) {
      ++census.unusable[aggregator.unusable];
    } else if (domains.place(aggregator.host).domain == kNoDomain) {
      ++census.elsewhere;
    } else if (fits < 2 || aggregator.children_max < 2) {
      ++census.too_small;
      census.memory_free_max = std::max(census.memory_free_max, aggregator.memory_free_bytes);
    } else {
      ++census.usable;
    }
  }
  return census;
}

std::string how_many(std::uint32_t number, std::string_view what) {
  return std::to_string(number) + " " + std::string(what) + (number == 1 ? "" : "s");
}

bool may_be_used(const PlanRequest& request, std::uint32_t aggregator) {
  return request.aggregators[aggregator].unusable.empty() &&
         std::ranges::find(request.avoided, aggregator) == request.avoided.end() && !request.is_reserved(aggregator) &&
         !request.is_stricter(aggregator);
}

/// Names the rails on which no usable aggregator has a link: each lane needs aggregators of one rail.
std::string rails_without(const DomainTree& domains, const PlanRequest& request) {
  std::string names;
  for (std::uint32_t rail = 0; rail < domains.rails().size(); ++rail) {
    const auto on_rail = [&](std::uint32_t i) {
      const std::uint32_t host = domains.find(request.aggregators[i].host);
      return may_be_used(request, i) && host != kUnknownHost && domains.interface_of(host, rail) != kNoInterface;
    };
    bool found = false;
    for (std::uint32_t i = 0; i < request.aggregators.size() && !found; ++i) found = on_rail(i);
    if (!found) names += (names.empty() ? "'" : ", '") + domains.rails()[rail] + "'";
  }
  return names;
}

}  // namespace

std::string explain_no_tree(const DomainTree& domains, const PlanRequest& request) {
  if (request.aggregators.empty()) return "no tree: no aggregator is registered with the manager";
  const Census census = count(domains, request);
  std::string text = "no tree for " + how_many(static_cast<std::uint32_t>(request.hosts.size()), "rank") + ": of " +
                     how_many(static_cast<std::uint32_t>(request.aggregators.size()), "registered aggregator");
  std::string separator = " ";
  const auto add = [&](std::uint32_t number, const std::string& what) {
    text += separator + std::to_string(number) + (number == 1 ? " is " : " are ") + what;
    separator = ", ";
  };
  for (const auto& [reason, number] : census.unusable) add(number, reason);
  if (census.elsewhere != 0) add(census.elsewhere, "on a host that the topology does not have");
  if (census.too_small != 0) {
    add(census.too_small, "without room for two children of one lane (" +
                              std::to_string(lane_reservation_bytes(2, request.window, request.segment_bytes)) +
                              " bytes; the most that an aggregator has left is " +
                              std::to_string(census.memory_free_max) + ")");
  }
  if (census.usable != 0) {
    add(census.usable, "usable, but their free memory and their free places for children allow no tree of ");
    text += request.levels != 0 ? "exactly " + how_many(request.levels, "level")
                                : "at most " + how_many(request.levels_max, "level");
  }
  if (const std::string rails = rails_without(domains, request); !rails.empty())
    text += "; no usable aggregator has a link to the rails " + rails;
  return text;
}

}  // namespace tributary::manager
