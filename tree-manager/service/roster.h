#pragma once
// The aggregators as the planner takes them. A list of thousands with their places is made when an aggregator comes,
// goes or changes its state, which is rare; memory, which every group changes, is kept one by one.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tree-manager/planner/fabric.h"

namespace tributary::manager {

class Roster {
 public:
  /// Forgets the list: an aggregator has changed, or the topology.
  void forget() noexcept { index_ = nullptr; }
  [[nodiscard]] bool known() const noexcept { return index_ != nullptr; }
  /// `list` has the aggregators with the memory that each has free; `memory_bytes` is all that each has.
  void set(std::vector<PlanAggregator> list, std::vector<std::uint64_t> memory_bytes, const Fabric& fabric);
  /// Notes the memory that this incarnation has promised. Does nothing for one that is not in the list.
  void set_promised(const std::string& name, std::uint64_t incarnation, std::uint64_t bytes);

  [[nodiscard]] const std::vector<PlanAggregator>& list() const noexcept { return list_; }
  [[nodiscard]] const AggregatorIndex* index() const noexcept { return index_.get(); }
  [[nodiscard]] std::optional<std::uint32_t> number_of(const std::string& name) const;

 private:
  std::vector<PlanAggregator> list_;
  std::vector<std::uint64_t> memory_bytes_;  // of each
  std::shared_ptr<const AggregatorIndex> index_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace tributary::manager
