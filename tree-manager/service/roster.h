#pragma once
// The aggregators in the form that the planner reads. The list, of thousands of aggregators with their places, is made
// only when an aggregator comes, goes or changes its state, which is rare. The memory, which every group changes, is
// updated for single aggregators.
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
  /// Forgets the list, because an aggregator or the topology has changed.
  void forget() noexcept { index_ = nullptr; }
  [[nodiscard]] bool known() const noexcept { return index_ != nullptr; }
  /// `list` has the aggregators with their free memory; `memory_bytes` has the whole memory of each.
  void set(std::vector<PlanAggregator> list, std::vector<std::uint64_t> memory_bytes, const Fabric& fabric);
  /// Notes the memory that this incarnation has promised, if it is in the list.
  void set_promised(const std::string& name, std::uint64_t incarnation, std::uint64_t bytes);

  [[nodiscard]] const std::vector<PlanAggregator>& list() const noexcept { return list_; }
  [[nodiscard]] const AggregatorIndex* index() const noexcept { return index_.get(); }
  [[nodiscard]] std::optional<std::uint32_t> number_of(const std::string& name) const;

 private:
  std::vector<PlanAggregator> list_;
  std::vector<std::uint64_t> memory_bytes_;  // whole memory of each aggregator
  std::shared_ptr<const AggregatorIndex> index_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace tributary::manager
