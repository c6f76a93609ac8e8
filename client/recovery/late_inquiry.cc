#include "client/recovery/late_inquiry.h"

#include <algorithm>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::client {

using transport::TimePoint;

void LateInquiry::on_progress(std::uint32_t rank, std::uint64_t operation, const Progress& progress) noexcept {
  TRIBUTARY_ASSERT(rank < answers_.size(), "rank {} of {} answers", rank, answers_.size());
  if (!under_way_ || operation_ != operation) return;
  if (progress.sighting) {
    if (progress.sighting->rank < answers_.size()) sightings_[progress.sighting->rank] = *progress.sighting;
    return;
  }
  // A rank that still waits in an earlier operation is not late: it could not call this one yet.
  answers_[rank] = progress.called || progress.oldest < operation ? Answer::called : Answer::not_called;
  troubles_[rank] = progress.troubles;
}

std::vector<std::uint32_t> LateInquiry::unheard(TimePoint now) {
  if (!under_way_ || witnesses_asked_ >= kWitnessQuestionsMax) return {};
  if (now - asked_at_ < witness_after(witnesses_asked_)) return {};
  ++witnesses_asked_;
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < answers_.size(); ++rank) {
    if (answers_[rank] != Answer::none) continue;
    if (ranks.size() == kSilentMax) return {};
    ranks.push_back(rank);
  }
  return ranks;
}

std::optional<LateInquiry::Wait> LateInquiry::wait_now(const std::optional<Wait>& own, TimePoint now) const noexcept {
  if (own) return own;
  if (report_ && now - report_->at < kReportValid) return Wait{report_->operation, kAfter + (now - report_->at)};
  return std::nullopt;
}

/// Returns whether all ranks have answered, or their witnesses have seen why they do not.
bool LateInquiry::heard_all() const noexcept {
  std::size_t silent = 0;
  for (std::uint32_t rank = 0; rank < answers_.size(); ++rank) {
    if (answers_[rank] != Answer::none) continue;
    if (++silent > kSilentMax || !seen_why(rank)) return false;
  }
  return true;
}

bool LateInquiry::seen_why(std::uint32_t rank) const noexcept {
  const auto seen = sightings_.find(rank);
  return seen != sightings_.end() && (seen->second.stopped || cause_for(rank) != LateCause::silent);
}

std::vector<LateRank> LateInquiry::late(transport::Duration lag) const {
  std::vector<LateRank> late;
  for (std::uint32_t rank = 0; rank < answers_.size() && late.size() < kLateRanksMax; ++rank) {
    if (answers_[rank] == Answer::called) continue;
    late.push_back(
        {.rank = rank, .lag = std::chrono::duration_cast<std::chrono::milliseconds>(lag), .cause = cause_for(rank)});
  }
  return late;
}

LateCause LateInquiry::cause_for(std::uint32_t rank) const noexcept {
  TroublesMean others;
  for (std::uint32_t other = 0; other < answers_.size(); ++other) {
    if (other != rank && answers_[other] != Answer::none) others.add(troubles_[other]);
  }
  if (answers_[rank] == Answer::none) {
    const auto seen = sightings_.find(rank);
    if (seen == sightings_.end() || seen->second.stopped) return LateCause::silent;
    return cause_of({.processor_wait = seen->second.processor_wait}, others.mean(), LateCause::silent);
  }
  return cause_of(troubles_[rank], others.mean(), LateCause::not_called);
}

bool LateInquiry::missed_again(const std::vector<LateRank>& late, TimePoint now) const noexcept {
  return late.size() == 1 && late.front().rank == missed_.rank && missed_.operation != operation_ &&
         now - missed_.at <= kAgainWithin;
}

/// Returns whether early answers may be out of date: several ranks were missing, or the one that was has answered. A
/// rank without an answer would have answered by now.
bool LateInquiry::may_have_called(const std::vector<LateRank>& missing) const noexcept {
  return missing.size() > 1 || (missing.size() == 1 && answers_[missing.front().rank] == Answer::not_called);
}

/// Ends an inquiry: the log names the late ranks if the operation has stood still for a second, or if the one rank that
/// is missing was missing before.
void LateInquiry::conclude(const Wait& wait, TimePoint now) {
  std::vector<LateRank> missing = late(wait.time);
  const bool again = missed_again(missing, now);
  if (!again && wait.time < kAfter) return;
  under_way_ = false;
  if (std::exchange(early_, false) && !again && may_have_called(missing)) {
    next_ = now;
    return;
  }
  note_missing(missing, now);
  if (again && missing.front().cause == LateCause::not_called) missing.front().cause = LateCause::late_call;
  again_ = again;
  log_.take(std::move(missing), now);
}

/// Remembers the one rank that is missing. While none or several are, early questions become rare.
void LateInquiry::note_missing(const std::vector<LateRank>& missing, TimePoint now) {
  if (missing.size() == 1) {
    missed_ = {.rank = missing.front().rank, .operation = *operation_, .at = now};
    early_pause_ = {};
    return;
  }
  early_pause_ = std::clamp<transport::Duration>(2 * early_pause_, kPauseFirst, kPauseLast);
  early_next_ = now + early_pause_;
}

std::uint64_t LateInquiry::ask(const Wait& wait, TimePoint now) {
  under_way_ = true;
  early_ = wait.time < kAfter;
  asked_at_ = now;
  witnesses_asked_ = 0;
  sightings_.clear();
  until_ = now + kAnswerLimit;
  next_ = now + pause_;
  pause_ = std::min(2 * pause_, kPauseLast);
  std::ranges::fill(answers_, Answer::none);
  return *operation_;
}

/// Notes the end of the operation that stood still. Returns true if no other one stands still.
bool LateInquiry::over(const std::optional<Wait>& wait, TimePoint now) {
  if (operation_ && under_way_) note_missing(late(kAskAfter), now);
  under_way_ = false;
  if (again_ && now - missed_.at > kAgainWithin) again_ = false;
  if (!again_ && log_.names()) log_.take({}, now);
  operation_.reset();
  if (!wait) return true;
  operation_ = wait->operation;
  pause_ = kPauseFirst;
  next_ = now;
  return false;
}

std::optional<std::uint64_t> LateInquiry::tick(const std::optional<Wait>& own, TimePoint now) {
  if (!log_.tells()) return std::nullopt;
  const auto wait = wait_now(own, now);
  if (!wait || wait->operation != operation_) {
    if (over(wait, now)) return std::nullopt;
  }
  if (under_way_ && early_ && !own) {  // rank 0 has ended the operation: the early answers say nothing about now
    note_missing(late(kAskAfter), now);
    under_way_ = early_ = false;
    next_ = now;
  }
  if (under_way_) {
    if (heard_all() || now >= until_) conclude(*wait, now);
    return std::nullopt;
  }
  const bool too_early = wait->time < kAfter && now < early_next_;
  return now < next_ || too_early ? std::nullopt : std::optional(ask(*wait, now));
}

}  // namespace tributary::client
