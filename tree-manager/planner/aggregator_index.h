#pragma once
// Aggregators, sorted by their places. A list of thousands is sorted once for many plans.
#include <cstdint>
#include <span>
#include <vector>

#include "tree-manager/planner/domains.h"

namespace tributary::manager {

struct PlanAggregator;

/// Valid for one list of aggregators on one fabric, until an aggregator comes, goes or gets another host.
class AggregatorIndex {
 public:
  struct Entry {
    std::uint32_t index = 0;      // index in the list
    std::uint32_t host = 0;       // DomainTree's number of the host
    std::uint32_t interface = 0;  // number of the host's interface
    std::uint32_t domain = 0;
    std::uint32_t preorder = 0;  // preorder number of the domain
  };

  AggregatorIndex(const DomainTree& domains, std::span<const PlanAggregator> aggregators);
  /// Returns the aggregators that take part in lanes of this route, by the domains' order of visit, then by host and
  /// name.
  [[nodiscard]] const std::vector<Entry>& on_route(std::uint32_t route) const {
    return by_route_[route % by_route_.size()];
  }
  /// Returns the aggregators that are cabled to the domain itself.
  [[nodiscard]] std::span<const Entry> at(const Domain& domain, std::uint32_t route) const {
    return between(domain.preorder, domain.preorder + 1, route);
  }
  /// Returns the aggregators at the domain or below it.
  [[nodiscard]] std::span<const Entry> below(const Domain& domain, std::uint32_t route) const {
    return between(domain.preorder, domain.preorder_end, route);
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  [[nodiscard]] std::span<const Entry> between(std::uint32_t begin, std::uint32_t end, std::uint32_t route) const;

  std::vector<std::vector<Entry>> by_route_;
  std::size_t size_ = 0;
};

}  // namespace tributary::manager
