#include "client/recovery/late_inquiry.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::client {

using transport::TimePoint;

void LateInquiry::on_progress(std::uint32_t rank, std::uint64_t operation, const Progress& progress) noexcept {
  TRIBUTARY_ASSERT(rank < answers_.size(), "rank {} of {} answers", rank, answers_.size());
  if (!under_way_ || operation_ != operation) return;
  answers_[rank] = progress.called ? Answer::called : Answer::not_called;
  troubles_[rank] = progress.troubles;
}

std::optional<LateInquiry::Wait> LateInquiry::wait_now(const std::optional<Wait>& own, TimePoint now) const noexcept {
  if (own) return own;
  if (report_ && now - report_->at < kReportValid) return Wait{report_->operation, kAfter + (now - report_->at)};
  return std::nullopt;
}

bool LateInquiry::heard_all() const noexcept {
  return std::ranges::find(answers_, Answer::none) == answers_.end();
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
  if (answers_[rank] == Answer::none) return LateCause::silent;
  TroublesMean others;
  for (std::uint32_t other = 0; other < answers_.size(); ++other) {
    if (other != rank && answers_[other] != Answer::none) others.add(troubles_[other]);
  }
  return cause_of(troubles_[rank], others.mean(), LateCause::late_call);
}

std::optional<std::uint64_t> LateInquiry::tick(const std::optional<Wait>& own, TimePoint now) {
  if (!log_.tells()) return std::nullopt;
  const auto wait = wait_now(own, now);
  if (!wait || wait->operation != operation_) {
    under_way_ = false;
    if (operation_) log_.take({}, now);
    operation_.reset();
    if (!wait) return std::nullopt;
    operation_ = wait->operation;
    pause_ = kPauseFirst;
    next_ = now;
  }
  if (under_way_) {
    if (!heard_all() && now < until_) return std::nullopt;
    under_way_ = false;
    log_.take(late(wait->time), now);
    return std::nullopt;
  }
  if (now < next_) return std::nullopt;
  under_way_ = true;
  until_ = now + kAnswerLimit;
  next_ = now + pause_;
  pause_ = std::min(2 * pause_, kPauseLast);
  std::ranges::fill(answers_, Answer::none);
  return operation_;
}

}  // namespace tributary::client
