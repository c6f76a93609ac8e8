// The guess why a child is late.
#include "aggregator/worker/late_causes.h"

#include <gtest/gtest.h>

namespace tributary::aggregator {
namespace {

using namespace std::chrono_literals;

class LateCausesTest : public testing::Test {
 protected:
  /// Makes an operation of `segments` segments, whose first one has the lag `first` and comes `pause` after the last
  /// contribution. The lag of each further segment is greater by `growth`.
  void operate(int segments, LateCauses::Duration pause, LateCauses::Duration first, LateCauses::Duration growth) {
    now_ += pause;
    for (int i = 0; i < segments; ++i) {
      causes_.contributed(0, operation_, first + i * growth, now_);
      now_ += 1ms;
    }
    ++operation_;
  }
  [[nodiscard]] LateCause cause(LateCauses::Duration waited = 0ms) const { return causes_.cause(0, waited, now_); }

  LateCauses causes_{3};
  LateCauses::TimePoint now_{1h};
  std::uint64_t operation_ = 0;
};

TEST_F(LateCausesTest, NothingIsKnownBeforeTheFirstLag) {
  EXPECT_EQ(cause(), LateCause::unknown);
  operate(4, 1s, 0ms, 0ms);
  EXPECT_EQ(cause(), LateCause::unknown);
}

TEST_F(LateCausesTest, AChildThatCallsLateIsLateWithTheFirstSegment) {
  for (int i = 0; i < 3; ++i) operate(64, 500ms, 100ms, 0ms);
  EXPECT_EQ(cause(), LateCause::late_call);
}

TEST_F(LateCausesTest, OnASlowLinkTheLagGrowsWithTheSegments) {
  for (int i = 0; i < 3; ++i) operate(64, 10ms, 0ms, 2ms);
  EXPECT_EQ(cause(), LateCause::slow_data);
}

TEST_F(LateCausesTest, AChildThatStillSendsTheOperationBeforeDoesNotCallLate) {
  operate(64, 10ms, 0ms, 2ms);
  for (int i = 0; i < 5; ++i) operate(64, 1ms, 128ms, 0ms);  // operations overlap: the backlog stays
  EXPECT_EQ(cause(), LateCause::slow_data);
}

TEST_F(LateCausesTest, ALinkThatBecomesSlowIsFoundAfterSomeOperations) {
  for (int i = 0; i < 20; ++i) operate(64, 500ms, 100ms, 0ms);
  for (int i = 0; i < 8; ++i) operate(64, 10ms, 0ms, 2ms);
  EXPECT_EQ(cause(), LateCause::slow_data);
}

TEST_F(LateCausesTest, NothingForASecondIsSilence) {
  operate(64, 10ms, 0ms, 2ms);
  EXPECT_EQ(cause(LateCauses::kSilent - 1ms), LateCause::slow_data);
  EXPECT_EQ(cause(LateCauses::kSilent), LateCause::silent);
}

TEST_F(LateCausesTest, AChildThatAnswersAndHasCalledNothingHasNotCalled) {
  for (int i = 0; i < 3; ++i) operate(1, 100ms, 2ms, 0ms);
  EXPECT_FALSE(causes_.ask(0, LateCauses::kAskAfter - 1ms, now_));
  ASSERT_TRUE(causes_.ask(0, LateCauses::kAskAfter, now_));
  EXPECT_FALSE(causes_.ask(0, LateCauses::kAskAfter, now_ + LateCauses::kAskPause - 1ms)) << "it is not asked so often";
  causes_.says(0, {.idle = true}, now_ += 1ms);
  now_ += 300ms;
  EXPECT_EQ(cause(700ms), LateCause::not_called);
  causes_.says(0, {.idle = false}, now_);
  EXPECT_EQ(cause(700ms), LateCause::slow_data) << "it has called, and its data do not come";
}

TEST_F(LateCausesTest, AChildThatDoesNotAnswerIsSilentEvenIfItAnsweredBefore) {
  for (int i = 0; i < 3; ++i) operate(1, 100ms, 2ms, 0ms);
  ASSERT_TRUE(causes_.ask(0, 400ms, now_));
  EXPECT_EQ(cause(400ms), LateCause::late_call) << "the answer may be under way";
  now_ += LateCauses::kAnswerLimit;
  EXPECT_EQ(cause(700ms), LateCause::silent);
  causes_.says(0, {.idle = true}, now_);
  EXPECT_EQ(cause(700ms), LateCause::not_called);
  now_ += 500ms;
  ASSERT_TRUE(causes_.ask(0, 1200ms, now_));
  EXPECT_EQ(cause(1200ms), LateCause::not_called);
  now_ += LateCauses::kAnswerLimit;
  EXPECT_EQ(cause(1700ms), LateCause::silent);
}

TEST_F(LateCausesTest, AChildThatDoesNotAnswerGetsFewFurtherQuestions) {
  ASSERT_TRUE(causes_.ask(0, 400ms, now_));
  EXPECT_FALSE(causes_.ask(0, 400ms, now_ + LateCauses::kAskAgain - 1ms));
  std::uint32_t further = 0;
  for (int i = 0; i < 1000; ++i) {
    now_ += 1s;
    further += causes_.ask(0, 400ms, now_) ? 1U : 0U;
    EXPECT_EQ(cause(700ms), LateCause::silent) << "a further question does not begin the wait for an answer again";
  }
  EXPECT_EQ(further, LateCauses::kRepeatsMax);
  causes_.says(0, {}, now_);
  EXPECT_TRUE(causes_.ask(0, 400ms, now_)) << "it has answered";
  operate(1, 1s, 0ms, 0ms);
  EXPECT_TRUE(causes_.ask(0, 400ms, now_)) << "it has contributed";
}

TEST_F(LateCausesTest, AnotherChildTellsWhyAChildDoesNotAnswer) {
  for (int i = 0; i < 3; ++i) operate(1, 100ms, 2ms, 0ms);
  EXPECT_FALSE(causes_.ask_others(0, now_)) << "nobody has asked it";
  ASSERT_TRUE(causes_.ask(0, 400ms, now_));
  EXPECT_FALSE(causes_.ask_others(0, now_ + witness_after(0) - 1ms));
  EXPECT_TRUE(causes_.ask_others(0, now_ += witness_after(0)));
  EXPECT_FALSE(causes_.ask_others(0, now_)) << "asked just now";
  now_ += 300ms;
  EXPECT_TRUE(causes_.ask_others(0, now_));
  EXPECT_EQ(cause(800ms), LateCause::silent);
  causes_.seen(0, {.processor_wait = 95}, now_);
  EXPECT_EQ(cause(800ms), LateCause::no_cpu);
  causes_.seen(0, {.processor_wait = 10}, now_);
  EXPECT_EQ(cause(800ms), LateCause::silent);
  causes_.seen(0, {.stopped = true, .processor_wait = 95}, now_);
  EXPECT_EQ(cause(800ms), LateCause::silent);
  causes_.seen(0, {.processor_wait = 95}, now_);
  for (const std::uint32_t child : {1U, 2U}) causes_.says(child, {.troubles = {.processor_wait = 90}}, now_);
  EXPECT_EQ(cause(800ms), LateCause::silent) << "all children wait for processors";
  causes_.says(0, {.idle = true}, now_);
  EXPECT_EQ(cause(800ms), LateCause::not_called) << "it has answered";
  EXPECT_FALSE(causes_.ask_others(0, now_ + 10s));
}

TEST_F(LateCausesTest, OthersAreAskedAFewTimesAboutOneQuestion) {
  ASSERT_TRUE(causes_.ask(0, 400ms, now_));
  std::uint32_t asked = 0;
  for (int i = 0; i < 1000; ++i) asked += causes_.ask_others(0, now_ += 100ms) ? 1U : 0U;
  EXPECT_EQ(asked, kWitnessQuestionsMax);
}

TEST_F(LateCausesTest, AWaitAsLongAsTheLagsBeforeIsALateCall) {
  for (int i = 0; i < 3; ++i) operate(1, 900ms, 800ms, 0ms);
  ASSERT_TRUE(causes_.ask(0, 400ms, now_));
  causes_.says(0, {.idle = true}, now_);
  EXPECT_EQ(cause(700ms), LateCause::late_call) << "it came after 800 ms before";
  EXPECT_EQ(cause(10s), LateCause::not_called);
}

TEST(LateCauseNames, AreReadAgainAndUnknownNamesAreUnknown) {
  for (std::size_t i = 0; i < kLateCauses.size(); ++i)
    EXPECT_EQ(late_cause_from_string(kLateCauses[i].name), static_cast<LateCause>(i));
  EXPECT_EQ(late_cause_from_string("of a later version"), LateCause::unknown);
  EXPECT_EQ(late_cause_from_string(""), LateCause::unknown);
}

TEST_F(LateCausesTest, ATroubleThatTheChildTellsIsTheCause) {
  for (int i = 0; i < 3; ++i) operate(64, 500ms, 100ms, 0ms);
  causes_.says(0, {.troubles = {.processor_wait = 70}}, now_);
  EXPECT_EQ(cause(), LateCause::no_cpu);
  now_ += 1s;
  EXPECT_EQ(cause(1s), LateCause::no_cpu) << "it is silent because it does not run";
  EXPECT_EQ(cause(999ms), LateCause::silent) << "it has told nothing since the others wait";
  causes_.says(0, {.troubles = {.sent_again = 20}}, now_);
  EXPECT_EQ(cause(), LateCause::lossy_link);
  causes_.says(0, {}, now_);
  EXPECT_EQ(cause(), LateCause::late_call);
}

TEST_F(LateCausesTest, ATroubleOfAllChildrenIsNotTheCauseOfOne) {
  for (int i = 0; i < 3; ++i) operate(64, 500ms, 100ms, 0ms);
  for (std::uint32_t child = 0; child < 3; ++child) causes_.says(child, {.troubles = {.processor_wait = 70}}, now_);
  EXPECT_EQ(cause(), LateCause::late_call);
}

TEST_F(LateCausesTest, AWordOfLongAgoNoLongerCounts) {
  for (int i = 0; i < 3; ++i) operate(64, 500ms, 100ms, 0ms);
  causes_.says(0, {.troubles = {.processor_wait = 70}}, now_);
  now_ += kTroublesValid;
  EXPECT_EQ(cause(), LateCause::no_cpu);
  now_ += 1ms;
  EXPECT_EQ(cause(), LateCause::late_call);
}

}  // namespace
}  // namespace tributary::aggregator
