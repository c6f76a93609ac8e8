#pragma once
// Rank 0 asks who is late in an operation that no tree carries, where no aggregator sees it. When such an operation has
// stood still for a while, rank 0 asks all ranks whether they have called it. After a second its log names the ranks
// that have not, or that do not answer; earlier if the same rank was missing in an operation shortly before. Rank 0
// asks again and again while the operation stands still, with pauses that double.
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "client/control/control_message.h"
#include "client/operation/late_log.h"

namespace tributary::client {

class LateInquiry {
 public:
  static constexpr transport::Duration kAfter = LateLog::kAfter;
  static constexpr transport::Duration kAskAfter = std::chrono::milliseconds(300);
  /// A rank that is missing in two operations within this time is late.
  static constexpr transport::Duration kAgainWithin = std::chrono::seconds(3);
  static constexpr transport::Duration kAnswerLimit = std::chrono::milliseconds(500);
  /// If more ranks are silent, no witness is asked: rather their network is broken.
  static constexpr std::size_t kSilentMax = 4;
  static constexpr transport::Duration kPauseFirst = std::chrono::seconds(1), kPauseLast = std::chrono::seconds(30);
  /// Rank 0 believes another rank's report that it waits for this time.
  static constexpr transport::Duration kReportValid = std::chrono::milliseconds(2500);

  /// An operation between the ranks that stands still, and for how long.
  struct Wait {
    std::uint64_t operation = 0;
    transport::Duration time{};
  };

  /// `group` is the log's, in which each rank is a member.
  LateInquiry(LateLog::Group group, LateLog::Tell tell)
      : answers_(group.members), troubles_(group.members), log_(std::move(group), std::move(tell)) {}

  /// Notes that another rank waits in this operation: rank 0 itself may be late.
  void report_wait(std::uint64_t operation, transport::TimePoint now) noexcept { report_ = {operation, now}; }
  /// Extends the limits by `absence`: this process was away until now, and has not read the answers that have come.
  void excuse(transport::Duration absence) noexcept {
    until_ += absence;
    next_ += absence;
    asked_at_ += absence;
    if (report_) report_->at += absence;
    missed_.at += absence;
  }
  /// Notes a rank's answer, or what a rank sees of another one.
  void on_progress(std::uint32_t rank, std::uint64_t operation, const Progress& progress) noexcept;
  /// Returns the ranks about which to ask their witnesses now, because they do not answer: kSilentMax at most.
  [[nodiscard]] std::vector<std::uint32_t> unheard(transport::TimePoint now);
  /// Returns the operation that stands still; call it only while unheard() returns ranks.
  [[nodiscard]] std::uint64_t operation() const noexcept { return operation_.value_or(kNever); }
  /// Returns the operation about which to ask all ranks now. `own`: the operation in which rank 0 has waited for
  /// kAskAfter.
  [[nodiscard]] std::optional<std::uint64_t> tick(const std::optional<Wait>& own, transport::TimePoint now);

 private:
  enum class Answer : std::uint8_t { none, called, not_called };
  struct Report {
    std::uint64_t operation;
    transport::TimePoint at;
  };
  [[nodiscard]] std::optional<Wait> wait_now(const std::optional<Wait>& own, transport::TimePoint now) const noexcept;
  [[nodiscard]] bool heard_all() const noexcept;
  /// Returns whether a witness has seen why this rank does not answer.
  [[nodiscard]] bool seen_why(std::uint32_t rank) const noexcept;
  [[nodiscard]] bool over(const std::optional<Wait>& wait, transport::TimePoint now);
  [[nodiscard]] std::uint64_t ask(const Wait& wait, transport::TimePoint now);
  void note_missing(const std::vector<LateRank>& missing, transport::TimePoint now);
  [[nodiscard]] bool may_have_called(const std::vector<LateRank>& missing) const noexcept;
  void conclude(const Wait& wait, transport::TimePoint now);
  [[nodiscard]] std::vector<LateRank> late(transport::Duration lag) const;
  [[nodiscard]] bool missed_again(const std::vector<LateRank>& late, transport::TimePoint now) const noexcept;
  [[nodiscard]] LateCause cause_for(std::uint32_t rank) const noexcept;

  std::optional<Report> report_;
  std::optional<std::uint64_t> operation_;  // the operation that stands still
  bool under_way_ = false;                  // the ranks were asked, and some may still answer
  bool early_ = false;                      // they were asked before the operation had stood still for kAfter
  transport::TimePoint until_{}, next_{};   // end of this inquiry, and the earliest begin of the next one
  transport::TimePoint early_next_{};       // the earliest time of an early question
  transport::Duration early_pause_{};
  transport::Duration pause_ = kPauseFirst;
  std::vector<Answer> answers_;         // by rank
  std::vector<RankTroubles> troubles_;  // by rank: of those that have answered
  transport::TimePoint asked_at_{};
  std::uint32_t witnesses_asked_ = 0;              // number of questions to witnesses since then
  std::map<std::uint32_t, Sighting> sightings_{};  // by rank: of those that have not answered
  /// The rank that alone was missing when an earlier operation had stood still.
  struct Missed {
    std::optional<std::uint32_t> rank;
    std::uint64_t operation = 0;
    transport::TimePoint at{};
  };
  Missed missed_;
  bool again_ = false;  // the log names a rank that was missing again
  LateLog log_;
};

}  // namespace tributary::client
