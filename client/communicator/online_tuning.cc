#include "client/communicator/online_tuning.h"

#include <algorithm>
#include <chrono>

#include "client/operation/payload.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

using transport::TimePoint;

namespace {

double us_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

std::string line_of(const tuning::Amendment& amendment) {
  const tuning::Step& step = amendment.step;
  std::string line = std::string(to_string(amendment.collective)) + " of " + std::to_string(amendment.above + 1) +
                     " to " + std::to_string(step.bytes_max) + " bytes is quickest ";
  switch (step.path) {
    case tuning::Path::tree:
      return line + "by trees";
    case tuning::Path::ranks:
      return line + "between the ranks";
    case tuning::Path::split:
      break;
  }
  const auto percent = std::uint64_t{100} * step.tree_share / tuning::kWholeShare;
  return line + "by both paths, " + std::to_string(percent) + " % of it by trees";
}

}  // namespace

void OnlineTuning::begin(const tuning::Figures& figures, const tuning::Policy& policy) {
  adaptation_.reset();
  const CommunicatorSettings& settings = shared_.settings;
  if (settings.tuning != TuningMode::automatic || settings.path != PathMode::automatic) return;
  if (settings.require_trees) return;  // no operation may try another path
  adaptation_.emplace(figures, settings.nranks, policy);
}

void OnlineTuning::ended(const Operation& o, Operation::State way) {
  if (shared_.settings.amendments) {
    if (const auto amendment = shared_.settings.amendments()) amend_(tuning::encode(*amendment));
    return;
  }
  if (!adaptation_ || way == Operation::State::by_hosts || !has_its_price(o)) return;
  const auto amendment = adaptation_->add(measured(o, way), shared_.transport.now());
  if (const auto news = adaptation_->take_news())
    shared_.whole.path_changed(shared_.log_prefix() + line_of(*news), false);
  if (amendment && !amend_(tuning::encode(*amendment))) agreed(std::nullopt, kNever);
}

/// Returns whether the operation costs what the figures say. In a group with exact sums, a sum of integers does not.
bool OnlineTuning::has_its_price(const Operation& o) const noexcept {
  if (!row_of(o.signature.collective).reduces) return true;
  return is_exact(o.signature.op) == shared_.settings.exact;
}

/// Returns the operation's times. Operations overlap, so a time starts at the end of the previous operation at the
/// earliest: only from then on the operation has the links to itself.
tuning::MeasuredOperation OnlineTuning::measured(const Operation& o, Operation::State way) {
  using enum Operation::State;
  const TimePoint now = shared_.transport.now();
  const std::uint64_t vector =
      amount_in_all(o.signature.collective, o.signature.count * o.element_bytes(), shared_.settings.nranks);
  tuning::MeasuredOperation it{.number = o.number,
                               .collective = o.signature.collective,
                               .bytes = std::max(o.part_of_bytes, vector),
                               .path = way != in_network ? tuning::Path::ranks
                                       : o.cut           ? tuning::Path::split
                                                         : tuning::Path::tree,
                               .time_us = us_between(std::max(o.started_at, last_end_), now),
                               .latency_us = us_between(o.started_at, now),
                               .under_way = under_way_};
  if (o.cut) {
    it.trees_us = us_between(std::max(o.started_at, last_trees_end_), o.trees_ended_at);
    it.ranks_us = us_between(o.share_started_at, o.share_ended_at);
  }
  last_end_ = std::max(last_end_, now);
  if (way == in_network) last_trees_end_ = std::max(last_trees_end_, o.trees_ended_at);
  return it;
}

void OnlineTuning::agreed(const std::optional<tuning::Amendment>& amendment, std::uint64_t first) {
  if (!adaptation_) return;
  adaptation_->took_effect(amendment ? first : tuning::Adaptation::kNever, shared_.transport.now());
}

}  // namespace tributary::client
