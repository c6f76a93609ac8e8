// Rank 0 asks who is late in an operation between the ranks.
#include "client/recovery/late_inquiry.h"

#include <gmock/gmock.h>

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Wait = LateInquiry::Wait;

constexpr std::uint32_t kLateRanks = 4;
constexpr std::uint64_t kLateOperation = 7;

class LateInquiryTest : public ::testing::Test {
 protected:
  std::optional<std::uint64_t> tick(const std::optional<Wait>& own) { return inquiry_.tick(own, now_); }
  void answer(std::uint32_t rank, bool called, std::uint64_t operation = kLateOperation) {
    inquiry_.on_progress(rank, operation, {.called = called});
  }
  /// Lets rank 0 ask, and the ranks answer; rank 2 has not called.
  void inquire(const std::optional<Wait>& own) {
    ASSERT_EQ(tick(own), kLateOperation);
    for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) answer(rank, rank != 2);
    ASSERT_EQ(tick(own), std::nullopt);
  }

  transport::TimePoint now_{1h};
  std::vector<std::string> lines_;
  LateInquiry inquiry_{{.members = kLateRanks,
                        .ranks = kLateRanks,
                        .name_of = [](std::uint32_t rank) { return "rank " + std::to_string(rank); }},
                       [this](const std::string& line, bool) { lines_.push_back(line); }};
  const Wait wait_{kLateOperation, 1200ms};
};

TEST_F(LateInquiryTest, TheRankThatHasNotCalledIsNamed) {
  inquire(wait_);
  EXPECT_THAT(lines_, ElementsAre("rank 2 is late by 1200 ms (it has not called the operation); 3 others wait"));
  EXPECT_EQ(tick(std::nullopt), std::nullopt);
  EXPECT_EQ(lines_.back(), "rank 2 is no longer late");
}

TEST_F(LateInquiryTest, TheRanksOwnTroubleIsTheCauseUnlessAllHaveIt) {
  const auto inquire_with = [this](std::uint8_t others) {
    ASSERT_EQ(tick(wait_), kLateOperation);
    for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) {
      const std::uint8_t wait = rank == 2 ? 90 : others;
      inquiry_.on_progress(rank, kLateOperation, {.called = rank != 2, .troubles = {.processor_wait = wait}});
    }
    ASSERT_EQ(tick(wait_), std::nullopt);
  };
  inquire_with(0);
  EXPECT_EQ(lines_.back(), "rank 2 is late by 1200 ms (its thread waits for a processor); 3 others wait");
  static_cast<void>(tick(std::nullopt));
  now_ += LateLog::kPause;
  inquire_with(80);
  EXPECT_EQ(lines_.back(), "rank 2 is late by 1200 ms (it has not called the operation); 3 others wait");
}

TEST_F(LateInquiryTest, TheRankThatDoesNotAnswerIsNamedAfterTheLimit) {
  EXPECT_EQ(tick(wait_), kLateOperation);
  for (const std::uint32_t rank : {0U, 2U, 3U}) answer(rank, true);
  now_ += LateInquiry::kAnswerLimit - 1ms;
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, IsEmpty());
  now_ += 1ms;
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, ElementsAre("rank 1 is late by 1200 ms (nothing comes from it); 3 others wait"));
}

TEST_F(LateInquiryTest, NobodyIsNamedIfAllHaveCalled) {
  EXPECT_EQ(tick(wait_), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, true);
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_EQ(tick(std::nullopt), std::nullopt);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(LateInquiryTest, AnswersAboutOtherOperationsDoNotCount) {
  EXPECT_EQ(tick(wait_), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, false, kLateOperation + 1);
  now_ += LateInquiry::kAnswerLimit;
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, ElementsAre("rank 0 is late by 1200 ms (nothing comes from it); 0 others wait"));
}

TEST_F(LateInquiryTest, PausesBetweenInquiriesDouble) {
  std::vector<transport::Duration> asked;
  for (transport::Duration at{}; at < 100s; at += 100ms, now_ += 100ms) {
    if (!tick(Wait{kLateOperation, 1s + at})) continue;
    asked.push_back(at);
    for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, true);
  }
  EXPECT_THAT(asked, ElementsAre(0s, 1s, 3s, 7s, 15s, 31s, 61s, 91s));
}

TEST_F(LateInquiryTest, AsksEarlyAndNamesTheRankAfterASecond) {
  const auto waits = [](transport::Duration time) { return Wait{kLateOperation, time}; };
  EXPECT_EQ(tick(waits(LateInquiry::kAskAfter)), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank != 2);
  now_ += 600ms;
  EXPECT_EQ(tick(waits(900ms)), std::nullopt);
  EXPECT_THAT(lines_, IsEmpty());
  now_ += 100ms;
  EXPECT_EQ(tick(waits(LateInquiry::kAfter)), std::nullopt);
  EXPECT_THAT(lines_, IsEmpty()) << "it may have called since";
  EXPECT_EQ(tick(waits(LateInquiry::kAfter)), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank != 2);
  EXPECT_EQ(tick(waits(LateInquiry::kAfter)), std::nullopt);
  EXPECT_THAT(lines_, ElementsAre("rank 2 is late by 1000 ms (it has not called the operation); 3 others wait"));
}

TEST_F(LateInquiryTest, ARankThatHasCalledSinceTheEarlyQuestionIsNotNamed) {
  EXPECT_EQ(tick(Wait{kLateOperation, LateInquiry::kAskAfter}), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank != 2);
  now_ += 700ms;
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_EQ(tick(wait_), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, true);
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(LateInquiryTest, ARankThatHasNotAnsweredTheEarlyQuestionIsNamedAfterASecond) {
  EXPECT_EQ(tick(Wait{kLateOperation, LateInquiry::kAskAfter}), kLateOperation);
  for (const std::uint32_t rank : {0U, 1U, 3U}) answer(rank, true);
  now_ += 700ms;
  EXPECT_EQ(tick(Wait{kLateOperation, LateInquiry::kAfter}), std::nullopt);
  EXPECT_THAT(lines_, ElementsAre("rank 2 is late by 1000 ms (nothing comes from it); 3 others wait"));
}

TEST_F(LateInquiryTest, RanksThatWaitInAnEarlierOperationAreNotLate) {
  EXPECT_EQ(tick(wait_), kLateOperation);
  for (const std::uint32_t rank : {0U, 1U, 2U})
    inquiry_.on_progress(rank, kLateOperation, {.called = rank == 0, .oldest = kLateOperation - (rank == 0 ? 0 : 1)});
  now_ += LateInquiry::kAnswerLimit;
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, ElementsAre("rank 3 is late by 1200 ms (nothing comes from it); 3 others wait"));
}

TEST_F(LateInquiryTest, WitnessesTellWhyARankDoesNotAnswer) {
  const auto see = [this](std::uint32_t rank, bool stopped, std::uint8_t processor_wait) {
    inquiry_.on_progress(1, kLateOperation,
                         {.sighting = Sighting{.rank = rank, .stopped = stopped, .processor_wait = processor_wait}});
  };
  const auto inquire_and_see = [&](bool stopped, std::uint8_t processor_wait) {
    EXPECT_EQ(tick(wait_), kLateOperation);
    EXPECT_THAT(inquiry_.unheard(now_), IsEmpty()) << "the answers are under way";
    for (const std::uint32_t rank : {0U, 1U, 3U}) answer(rank, true);
    EXPECT_THAT(inquiry_.unheard(now_ += witness_after(0)), ElementsAre(2U));
    EXPECT_THAT(inquiry_.unheard(now_), IsEmpty()) << "asked just now";
    EXPECT_EQ(inquiry_.operation(), kLateOperation);
    see(2, stopped, processor_wait);
    see(kLateRanks, false, 100);
    now_ += LateInquiry::kAnswerLimit;
    EXPECT_EQ(tick(wait_), std::nullopt);
    EXPECT_EQ(tick(std::nullopt), std::nullopt);
    now_ += LateLog::kPause;
  };
  inquire_and_see(false, 90);
  EXPECT_EQ(lines_.at(0), "rank 2 is late by 1200 ms (its thread waits for a processor); 3 others wait");
  inquire_and_see(true, 0);
  EXPECT_EQ(lines_.at(2), "rank 2 is late by 1200 ms (nothing comes from it); 3 others wait");
  inquire_and_see(false, 10);
  EXPECT_EQ(lines_.at(4), "rank 2 is late by 1200 ms (nothing comes from it); 3 others wait");
}

TEST_F(LateInquiryTest, ARankThatWaitsForAProcessorNeedNotAnswer) {
  const auto inquire_and_see = [this](std::uint8_t processor_wait, std::uint8_t others) {
    EXPECT_EQ(tick(wait_), kLateOperation);
    for (const std::uint32_t rank : {0U, 1U, 3U})
      inquiry_.on_progress(rank, kLateOperation, {.called = true, .troubles = {.processor_wait = others}});
    inquiry_.on_progress(1, kLateOperation, {.sighting = Sighting{.rank = 2, .processor_wait = processor_wait}});
    EXPECT_EQ(tick(wait_), std::nullopt);
  };
  inquire_and_see(90, 0);
  EXPECT_THAT(lines_, ElementsAre("rank 2 is late by 1200 ms (its thread waits for a processor); 3 others wait"));
  EXPECT_EQ(tick(std::nullopt), std::nullopt);
  now_ += LateLog::kPause;
  inquire_and_see(10, 0);
  EXPECT_EQ(lines_.size(), 2U) << "it may answer soon";
  EXPECT_EQ(tick(std::nullopt), std::nullopt);
  inquire_and_see(90, 80);
  EXPECT_EQ(lines_.size(), 2U) << "all ranks wait for processors";
}

TEST_F(LateInquiryTest, WitnessesAreAskedAFewTimesAboutAFewRanks) {
  EXPECT_EQ(tick(wait_), kLateOperation);
  std::uint32_t questions = 0;
  for (int i = 0; i < 1000; ++i) questions += inquiry_.unheard(now_ += 100ms).empty() ? 0U : 1U;
  EXPECT_EQ(questions, kWitnessQuestionsMax);
  LateInquiry larger({.members = 9, .ranks = 9, .name_of = [](std::uint32_t) { return ""; }},
                     [](const std::string&, bool) {});
  EXPECT_EQ(larger.tick(wait_, now_), kLateOperation);
  EXPECT_THAT(larger.unheard(now_ + 1s), IsEmpty()) << "nine ranks are silent";
}

TEST_F(LateInquiryTest, ARankThatIsMissingInTwoOperationsIsNamedBeforeASecond) {
  const auto miss = [this](std::uint64_t operation, std::uint32_t late) {
    const Wait wait{operation, LateInquiry::kAskAfter};
    EXPECT_EQ(tick(wait), operation);
    for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank != late, operation);
    EXPECT_EQ(tick(wait), std::nullopt);
    now_ += 100ms;
    EXPECT_EQ(tick(std::nullopt), std::nullopt) << "the operation goes on";
  };
  miss(kLateOperation, 2);
  miss(kLateOperation + 1, 1);
  EXPECT_THAT(lines_, IsEmpty()) << "another rank each time";
  miss(kLateOperation + 2, 1);
  EXPECT_THAT(lines_, ElementsAre("rank 1 is late by 300 ms (it begins its operations late); 3 others wait"));
  miss(kLateOperation + 3, 1);
  EXPECT_EQ(lines_.size(), 1U) << "it is late all the time";
  now_ += LateInquiry::kAgainWithin;
  EXPECT_EQ(tick(std::nullopt), std::nullopt);
  EXPECT_EQ(lines_.back(), "rank 1 is no longer late");
  now_ += LateLog::kPause;
  miss(kLateOperation + 4, 1);
  EXPECT_EQ(lines_.size(), 2U) << "the last time is long ago";
}

TEST_F(LateInquiryTest, EarlyQuestionsAreRareWhileSeveralRanksAreMissing) {
  std::uint64_t asked = 0;
  for (std::uint64_t operation = 0; operation < 100; ++operation, now_ += 1s) {
    const Wait wait{operation, LateInquiry::kAskAfter};
    if (!tick(wait)) continue;
    ++asked;
    for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank < 2, operation);
    EXPECT_EQ(tick(wait), std::nullopt);
    EXPECT_EQ(tick(std::nullopt), std::nullopt);
  }
  EXPECT_LE(asked, 8U);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(LateInquiryTest, SeveralRanksThatAreMissingAreAskedAgainAfterASecond) {
  EXPECT_EQ(tick(Wait{kLateOperation, LateInquiry::kAskAfter}), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank < 2);
  now_ += 700ms;
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_EQ(tick(wait_), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank != 3);
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, ElementsAre("rank 3 is late by 1200 ms (it has not called the operation); 3 others wait"));
}

TEST_F(LateInquiryTest, AnotherOperationIsAskedAboutAtOnce) {
  inquire(wait_);
  EXPECT_EQ(tick(Wait{kLateOperation + 1, 1s}), kLateOperation + 1);
}

TEST_F(LateInquiryTest, TheReportOfAnotherRankCountsForAWhile) {
  inquiry_.report_wait(kLateOperation, now_);
  ASSERT_EQ(tick(std::nullopt), kLateOperation);
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, rank != 0);
  EXPECT_EQ(tick(std::nullopt), std::nullopt);
  EXPECT_THAT(lines_, ElementsAre("rank 0 is late by 1000 ms (it has not called the operation); 3 others wait"));
  now_ += LateInquiry::kReportValid;
  EXPECT_EQ(tick(std::nullopt), std::nullopt);
  EXPECT_EQ(lines_.back(), "rank 0 is no longer late");
}

TEST_F(LateInquiryTest, ATimeInWhichRankZeroStoodStillDoesNotCount) {
  EXPECT_EQ(tick(wait_), kLateOperation);
  now_ += 5s;
  inquiry_.excuse(5s);
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, IsEmpty()) << "the answers were not read yet";
  for (std::uint32_t rank = 0; rank < kLateRanks; ++rank) answer(rank, true);
  EXPECT_EQ(tick(wait_), std::nullopt);
  EXPECT_THAT(lines_, IsEmpty());
}

}  // namespace
}  // namespace tributary::client
