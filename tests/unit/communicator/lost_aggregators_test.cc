#include "client/recovery/lost_aggregators.h"

#include <gmock/gmock.h>

namespace tributary::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LostAggregators, AreReportedOnceForEachGenerationOfTrees) {
  LostAggregators lost;
  lost.note("");
  EXPECT_FALSE(lost.any_untold());
  lost.note("a");
  lost.note("a");
  lost.note("b");
  EXPECT_THAT(lost.untold(), ElementsAre("a", "b"));
  lost.ask();
  lost.answered();
  lost.note("a");
  EXPECT_THAT(lost.untold(), IsEmpty());
  lost.forget_told();
  lost.note("a");
  EXPECT_THAT(lost.untold(), ElementsAre("a")) << "the aggregator was lost again after its restart";
}

TEST(LostAggregators, ALossDuringARequestIsReportedLater) {
  LostAggregators lost;
  lost.note("a");
  lost.ask();
  lost.note("b");
  lost.answered();
  EXPECT_THAT(lost.untold(), ElementsAre("b"));
  lost.forget_told();
  EXPECT_THAT(lost.untold(), ElementsAre("b"));
}

TEST(LostAggregators, AfterALostAnswerTheyAreReportedAgain) {
  LostAggregators lost;
  lost.note("a");
  lost.ask();
  EXPECT_THAT(lost.untold(), ElementsAre("a"));
}

}  // namespace
}  // namespace tributary::client
