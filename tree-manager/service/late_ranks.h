#pragma once
// The late ranks of a group, from the words of its aggregators.
#include <chrono>
#include <functional>
#include <span>
#include <vector>

#include "tree-manager/store/store.h"
#include "tributary/protocol/late_rank.h"

namespace tributary::manager {

/// The last word of one aggregator.
struct LateWord {
  std::span<const LateRank> late;
  std::chrono::milliseconds age{};
};

/// Returns the late ranks of the group, each once, the greatest lag first, at most kLateRanksMax. `word_of` returns the
/// last word of the aggregator with this name; an empty word if it has none. Only the aggregators of the group's trees
/// are asked, so no other aggregator can name its ranks.
[[nodiscard]] std::vector<LateRank> late_ranks_of(const GroupRecord& group,
                                                  const std::function<LateWord(const std::string&)>& word_of);

}  // namespace tributary::manager
