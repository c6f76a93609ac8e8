#include "tree-manager/service/roster.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::manager {

void Roster::set(std::vector<PlanAggregator> list, std::vector<std::uint64_t> memory_bytes, const Fabric& fabric) {
  TRIBUTARY_ASSERT(list.size() == memory_bytes.size(), "{} aggregators have {} sizes of memory", list.size(),
                   memory_bytes.size());
  list_ = std::move(list);
  memory_bytes_ = std::move(memory_bytes);
  index_ = fabric.index(list_);
  numbers_.clear();
  for (std::uint32_t i = 0; i < list_.size(); ++i) numbers_.emplace(list_[i].name, i);
}

void Roster::set_promised(const std::string& name, std::uint64_t incarnation, std::uint64_t bytes) {
  const auto number = known() ? number_of(name) : std::nullopt;
  if (!number || list_[*number].incarnation != incarnation) return;
  list_[*number].memory_free_bytes = memory_bytes_[*number] - std::min(bytes, memory_bytes_[*number]);
}

std::optional<std::uint32_t> Roster::number_of(const std::string& name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace tributary::manager
