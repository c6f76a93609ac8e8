#include "tree-manager/service/late_ranks.h"

#include <algorithm>

namespace tributary::manager {
namespace {

void add(std::vector<LateRank>& all, const LateRank& late) {
  const auto same = std::ranges::find(all, late.rank, &LateRank::rank);
  if (same == all.end()) {
    if (all.size() < kLateRanksMax) all.push_back(late);
    return;
  }
  same->lag = std::max(same->lag, late.lag);
  same->late_for = std::max(same->late_for, late.late_for);
  same->operations_behind = std::max(same->operations_behind, late.operations_behind);
}

void add_word(std::vector<LateRank>& all, const GroupRecord& group, const LateWord& word) {
  for (LateRank late : word.late) {
    if (late.group != group.id || late.rank >= group.hosts.size()) continue;
    late.host = group.hosts[late.rank];
    late.late_for += word.age;
    add(all, late);
  }
}

}  // namespace

std::vector<LateRank> late_ranks_of(const GroupRecord& group,
                                    const std::function<LateWord(const std::string&)>& word_of) {
  std::vector<LateRank> all;
  for (const LaneTree& lane : group.lanes) {
    for (const TreeNode& node : lane.nodes) add_word(all, group, word_of(node.aggregator));
  }
  std::ranges::sort(
      all, [](const LateRank& a, const LateRank& b) { return a.lag != b.lag ? a.lag > b.lag : a.rank < b.rank; });
  return all;
}

}  // namespace tributary::manager
