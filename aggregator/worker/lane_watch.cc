#include "aggregator/worker/lane_watch.h"

#include <algorithm>
#include <bit>

#include "tributary/protocol/assert.h"

namespace tributary::aggregator {

LaneWatch::LaneWatch(const TokenClaims& claims, const WorkerSettings& settings, WorkerMetrics& metrics)
    : compares_(claims.children > 1 && settings.late_ranks),
      claims_(claims),
      settings_(settings),
      metrics_(metrics),
      lag_(claims.children, claims.window),
      straggler_(claims.children),
      progress_(claims.children),
      causes_(claims.children),
      names_(claims.children),
      ranks_(claims.children) {}

LaneWatch::~LaneWatch() {
  if (told_) tell(*told_, false, told_at_);
}

LaneWatch::Questions LaneWatch::look(TimePoint now) {
  if (!compares_) return {};
  const LaneLag::Wait wait = lag_.oldest();
  straggler_.look(now, wait.missing, wait.missing != 0 ? now - wait.latest : std::chrono::nanoseconds::zero());
  const Questions asked = to_ask(wait, now);
  const auto late = straggler_.straggler();
  if (late == told_) return asked;
  if (told_) tell(*told_, false, now);
  told_ = late;
  told_at_ = now;
  if (told_) tell(*told_, true, now);
  return asked;
}

/// Only a rank is asked: an aggregator that is late waits for a rank below it.
LaneWatch::Questions LaneWatch::to_ask(const LaneLag::Wait& wait, TimePoint now) {
  Questions asked;
  for (std::uint64_t rest = wait.missing; rest != 0; rest &= rest - 1) {
    const auto child = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (!ranks_[child]) continue;
    const std::uint64_t bit = std::uint64_t{1} << child;
    if (causes_.ask(child, now - wait.since, now)) asked.words |= bit;
    if (causes_.ask_others(child, now)) asked.sightings |= bit;
  }
  return asked;
}

std::uint64_t LaneWatch::ranks() const noexcept {
  std::uint64_t ranks = 0;
  for (std::size_t child = 0; child < ranks_.size(); ++child)
    ranks |= std::uint64_t{ranks_[child].has_value()} << child;
  return ranks;
}

void LaneWatch::seen(const Sighting& sighting, TimePoint now) noexcept {
  const auto child = std::ranges::find(ranks_, std::optional(sighting.rank));
  if (child != ranks_.end()) causes_.seen(static_cast<std::uint32_t>(child - ranks_.begin()), sighting, now);
}

LateCause LaneWatch::cause(std::uint32_t child, TimePoint now) const noexcept {
  const LaneLag::Wait wait = lag_.oldest();
  const bool missing = (wait.missing >> child & 1U) != 0;
  return causes_.cause(child, missing ? now - wait.since : LateCauses::Duration::zero(), now);
}

void LaneWatch::tell(std::uint32_t child, bool late, TimePoint now) {
  TRIBUTARY_ASSERT(late || metrics_.stragglers > 0, "child {} is on time, and none is late", child);
  late ? ++metrics_.stragglers : --metrics_.stragglers;
  if (!settings_.on_straggler) return;
  settings_.on_straggler({.group = claims_.group,
                          .lane = claims_.lane,
                          .job = claims_.job,
                          .who = names_[child],
                          .others = claims_.children - 1U,
                          .late = late,
                          .part = straggler_.part(child),
                          .lag = lag_.children()[child].lag,
                          .cause = late ? cause(child, now) : LateCause::unknown});
}

void LaneWatch::add_to(LaneStatus& status, TimePoint now) const {
  const LaneLag::Wait wait = lag_.oldest();
  if (wait.missing != 0) status.waits_since = now - wait.since;
  for (std::uint32_t child = 0; child < names_.size(); ++child) {
    const bool missing = (wait.missing >> child & 1U) != 0;
    const bool late = told_ == child;
    if (missing) status.waits_for.push_back(names_[child]);
    status.of_children.push_back({.who = names_[child],
                                  .lag = lag_.children()[child],
                                  .waited_part = straggler_.part(child),
                                  .late = late,
                                  .rank = ranks_[child],
                                  .late_for = late ? now - told_at_ : std::chrono::nanoseconds(0),
                                  .waited_for = missing ? now - wait.since : std::chrono::nanoseconds(0),
                                  .operations_behind = progress_.behind(child),
                                  .cause = late ? cause(child, now) : LateCause::unknown});
  }
}

}  // namespace tributary::aggregator
