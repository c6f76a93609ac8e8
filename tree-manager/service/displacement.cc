#include "tree-manager/service/displacement.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tributary::manager {
namespace {

/// Returns the memory that each aggregator lacks for these trees.
std::map<Incarnation, std::uint64_t> lacking(const Allotments& allotments, const GroupRecord& wanted) {
  std::map<Incarnation, std::uint64_t> bytes;
  each_reservation(wanted, [&](const Incarnation& at, std::uint64_t more) { bytes[at] += more; });
  for (auto& [at, needed] : bytes) {
    const auto number = allotments.roster().number_of(at.first);
    const std::uint64_t free = number ? allotments.roster().list()[*number].memory_free_bytes : 0;
    needed -= std::min(needed, free);
  }
  std::erase_if(bytes, [](const auto& it) { return it.second == 0; });
  return bytes;
}

/// Subtracts the memory of the group's trees from the memory that is lacking. Returns true if this helps.
bool helps(std::map<Incarnation, std::uint64_t>& lack, const GroupRecord& group) {
  bool any = false;
  each_reservation(group, [&](const Incarnation& at, std::uint64_t bytes) {
    const auto found = lack.find(at);
    if (found == lack.end()) return;
    any = true;
    found->second -= std::min(found->second, bytes);
    if (found->second == 0) lack.erase(found);
  });
  return any;
}

}  // namespace

Displacement displace(Allotments& allotments, const Fabric& fabric, const GroupRecord& wanted,
                      std::vector<std::shared_ptr<const GroupRecord>> lower, const std::function<Plan()>& plan_now) {
  if (lower.empty()) return {};
  for (const auto& group : lower) allotments.remove(fabric, *group);
  Displacement result{.groups = {}, .plan = plan_now()};
  for (const auto& group : lower) allotments.add(fabric, *group);
  if (result.plan.lanes.empty()) return result;
  GroupRecord planned = wanted;
  planned.lanes = result.plan.lanes;
  planned.window = result.plan.window;
  auto lack = lacking(allotments, planned);
  std::ranges::sort(lower, [](const auto& a, const auto& b) {
    return std::pair(a->priority, b->id) < std::pair(b->priority, a->id);
  });
  for (const auto& group : lower) {
    if (lack.empty()) break;
    if (helps(lack, *group)) result.groups.push_back(group->id);
  }
  if (!lack.empty()) result.groups.clear();
  return result;
}

}  // namespace tributary::manager
