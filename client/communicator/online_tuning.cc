#include "client/communicator/online_tuning.h"

#include <algorithm>
#include <chrono>

#include "client/operation/payload.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client {

using transport::TimePoint;

namespace {

/// The least bytes of an operation whose copies tell that trees do not reach the GPU's memory. Shorter operations are
/// staged in any case (Stager::kDirectBytesMin).
constexpr std::uint64_t kStagedBytesMin = std::uint64_t{256} << 10;

double us_between(TimePoint from, TimePoint to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

/// Returns the time that a result still takes to its GPU after the operation has ended.
double us_after_end(const Operation& o) {
  if (!o.staged) return 0;
  const double rate = o.staged->copy_rate();
  return rate > 0 ? static_cast<double>(o.staged->result_left()) / rate : 0;
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

tuning::MeasuredOperation times_of(const Operation& o, Operation::State way, std::uint32_t nranks, const LastEnds& last,
                                   TimePoint now) {
  const TimePoint start = o.staged ? o.called_at : o.started_at;
  const double after_us = us_after_end(o);
  const std::uint64_t vector = amount_in_all(o.signature.collective, o.signature.count * o.element_bytes(), nranks);
  tuning::MeasuredOperation it{.number = o.number,
                               .collective = o.signature.collective,
                               .bytes = std::max(o.part_of_bytes, vector),
                               .path = way != Operation::State::in_network ? tuning::Path::ranks
                                       : o.cut                             ? tuning::Path::split
                                                                           : tuning::Path::tree,
                               .time_us = us_between(std::max(start, last.operation), now) + after_us,
                               .latency_us = us_between(start, now) + after_us};
  if (o.cut) {
    it.trees_us = us_between(std::max(o.started_at, last.trees), o.trees_ended_at);
    it.ranks_us = us_between(o.share_started_at, o.share_ended_at);
  }
  return it;
}

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
  note_copies(o, way);
  if (!adaptation_ || way == Operation::State::by_hosts || !has_its_price(o)) return;
  const auto amendment = adaptation_->add(measured(o, way), shared_.transport.now());
  if (const auto news = adaptation_->take_news())
    shared_.whole.path_changed(shared_.log_prefix() + line_of(*news), false);
  if (amendment && !amend_(tuning::encode(*amendment))) agreed(std::nullopt, kNever);
}

/// Takes the rate of the copies from and to GPUs as a figure of the model. If it is new, the model chooses again, which
/// ends all trials: so a rate must differ much, and the next one waits. Only long operations of trees count: between the
/// ranks, and where they are short, operations are also staged if trees reach the GPU's memory by themselves.
void OnlineTuning::note_copies(const Operation& o, Operation::State way) {
  constexpr double kDiffers = 2;  // copies vary with their direction, and with other traffic on the bus
  constexpr auto kPause = std::chrono::seconds(10);
  if (shared_.rank() != 0 || !o.staged || way != Operation::State::in_network || o.cut) return;
  if (o.signature.count * o.element_bytes() < kStagedBytesMin) return;
  const double gbytes = o.staged->copy_rate() / 1000;
  const double known = shared_.staging_gbytes;
  if (gbytes <= 0 || (gbytes < known * kDiffers && known < gbytes * kDiffers)) return;
  const TimePoint now = shared_.transport.now();
  if (known > 0 && now - copies_noted_at_ < kPause) return;
  copies_noted_at_ = now;
  shared_.staging_gbytes = gbytes;
  if (!shared_.info.figures) return;
  shared_.info.figures->staging_gbytes = gbytes;
  if (adaptation_)
    adaptation_->begin_again(*shared_.info.figures,
                             tuning::model_policy(*shared_.info.figures, shared_.settings.nranks));
}

/// Returns whether the operation costs what the figures say. In a group with exact sums, a sum of integers does not, and
/// products in the order of the ranks have no choice of path.
bool OnlineTuning::has_its_price(const Operation& o) const noexcept {
  if (!row_of(o.signature.collective).reduces) return true;
  if (o.signature.op == kOrderedProduct) return false;
  return is_exact(o.signature.op) == shared_.settings.exact;
}

tuning::MeasuredOperation OnlineTuning::measured(const Operation& o, Operation::State way) {
  const TimePoint now = shared_.transport.now();
  tuning::MeasuredOperation it = times_of(o, way, shared_.settings.nranks, last_, now);
  it.under_way = under_way_;
  const auto after = std::chrono::duration<double, std::micro>(us_after_end(o));
  last_.operation = std::max(last_.operation, now + std::chrono::duration_cast<transport::Duration>(after));
  if (way == Operation::State::in_network) last_.trees = std::max(last_.trees, o.trees_ended_at);
  return it;
}

void OnlineTuning::agreed(const std::optional<tuning::Amendment>& amendment, std::uint64_t first) {
  if (!adaptation_) return;
  adaptation_->took_effect(amendment ? first : tuning::Adaptation::kNever, shared_.transport.now());
}

}  // namespace tributary::client
