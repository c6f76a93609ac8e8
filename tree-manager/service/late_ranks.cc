#include "tree-manager/service/late_ranks.h"

#include <algorithm>

namespace tributary::manager {
namespace {

void add_word(std::vector<LateRank>& all, const GroupRecord& group, const LateWord& word) {
  for (LateRank late : word.late) {
    if (late.group != group.id || late.rank >= group.hosts.size()) continue;
    late.host = group.hosts[late.rank];
    late.late_for += word.age;
    add_late_rank(all, late);
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
