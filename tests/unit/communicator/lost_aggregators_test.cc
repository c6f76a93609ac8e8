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

TEST(LostAggregators, AnAggregatorThatRefusesAJoinForAMomentIsNotLost) {
  LostAggregators lost;
  lost.note(LaneFailure{"a", coded(Reason::lane_ended, "lane 0 has ended")});
  lost.note(LaneFailure{"a", coded(Reason::draining, "it takes no new lanes")});
  EXPECT_FALSE(lost.any_untold());
  lost.note(LaneFailure{"a", coded(Reason::aggregator_lost, "it closed the connection")});
  EXPECT_THAT(lost.untold(), ElementsAre("a"));
}

TEST(LostAggregators, AnAggregatorIsAvoidedAfterManyRefusalsForWantOfMemory) {
  const LaneFailure full{"a", coded(Reason::no_memory, "it has 1 of 2 bytes left")};
  LostAggregators lost;
  const auto refuse = [&](int trees) {
    for (int i = 0; i < trees; ++i) {
      lost.forget_told();
      for (int rank = 0; rank < 16; ++rank) lost.note(full);
    }
  };
  refuse(7);
  EXPECT_FALSE(lost.any_untold()) << "an earlier lane may still be sending its last frames";
  lost.found_trees();
  refuse(7);
  EXPECT_FALSE(lost.any_untold());
  refuse(1);
  EXPECT_THAT(lost.untold(), ElementsAre("a"));
}

TEST(LostAggregators, AfterALostAnswerTheyAreReportedAgain) {
  LostAggregators lost;
  lost.note("a");
  lost.ask();
  EXPECT_THAT(lost.untold(), ElementsAre("a"));
}

}  // namespace
}  // namespace tributary::client
