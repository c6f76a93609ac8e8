#pragma once
// The length of buffers for a group in whose trees forms of exact sums may travel.
#include <algorithm>
#include <cstdint>

#include "tree-manager/planner/fabric.h"
#include "tree-manager/store/store.h"
#include "tributary/protocol/sum_form.h"

namespace tributary::manager {

[[nodiscard]] inline std::uint32_t levels_of(const Plan& plan) noexcept {
  std::uint32_t levels = 0;
  for (const LaneTree& lane : plan.lanes) levels = std::max(levels, lane.levels);
  return levels;
}

/// Gives the group longer buffers if anybody sends forms in the trees that it would get without them, and if it gets as
/// good trees with them; if not, it tries half of their length. `by_rate`: the length of other groups' buffers;
/// `plan_for` plans a group's trees.
template <class PlanFor>
void fit_buffers(GroupRecord& group, std::uint32_t by_rate, PlanFor plan_for) {
  if (group.form_senders == FormSenders::nobody) return;
  group.segment_bytes = by_rate;
  const Plan plain = plan_for(group);
  if (levels_of(plain) < (group.form_senders == FormSenders::members ? 1U : 2U)) return;
  for (const std::uint32_t bytes : {form_buffer_bytes(by_rate), form_buffer_bytes(by_rate) / 2}) {
    group.segment_bytes = std::max(by_rate, bytes);
    const Plan longer = plan_for(group);
    if (longer.lanes.size() >= plain.lanes.size() && levels_of(longer) <= levels_of(plain)) return;
  }
  group.segment_bytes = by_rate;
}

}  // namespace tributary::manager
