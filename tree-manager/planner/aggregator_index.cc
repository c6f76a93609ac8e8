#include "tree-manager/planner/aggregator_index.h"

#include <algorithm>
#include <tuple>

#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

AggregatorIndex::AggregatorIndex(const DomainTree& domains, std::span<const PlanAggregator> aggregators)
    : by_route_(domains.routes()), size_(aggregators.size()) {
  for (std::uint32_t i = 0; i < aggregators.size(); ++i) {
    const std::uint32_t host = domains.find(aggregators[i].host);
    if (host == kUnknownHost) continue;
    for (std::uint32_t route = 0; route < by_route_.size(); ++route) {
      const std::uint32_t interface = domains.interface_of(host, route);
      if (interface == kNoInterface) continue;
      const std::uint32_t domain = domains.place(host, interface).domain;
      by_route_[route].push_back({i, host, interface, domain, domains.domains()[domain].preorder});
    }
  }
  const auto key = [&](const Entry& entry) {
    const PlanAggregator& it = aggregators[entry.index];
    return std::tuple(entry.preorder, std::string_view(it.host), std::string_view(it.name));
  };
  for (std::vector<Entry>& entries : by_route_) {
    std::ranges::sort(entries, [&](const Entry& a, const Entry& b) { return key(a) < key(b); });
  }
}

std::span<const AggregatorIndex::Entry> AggregatorIndex::between(std::uint32_t begin, std::uint32_t end,
                                                                 std::uint32_t route) const {
  const std::vector<Entry>& all = on_route(route);
  const auto first = std::ranges::lower_bound(all, begin, {}, &Entry::preorder);
  const auto last = std::ranges::lower_bound(all, end, {}, &Entry::preorder);
  return {first, last};
}

}  // namespace tributary::manager
