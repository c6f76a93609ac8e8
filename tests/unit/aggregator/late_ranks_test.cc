// The late ranks that an aggregator tells its manager.
#include <gmock/gmock.h>

#include "aggregator/daemon/late_ranks.h"
#include "aggregator/daemon/straggler_log.h"

namespace tributary::aggregator {
namespace {

using namespace std::chrono_literals;

ChildStatus late_child(std::uint32_t rank, std::chrono::nanoseconds lag, std::uint64_t behind) {
  return {.who = "rank",
          .lag = {.lag = lag},
          .late = true,
          .rank = rank,
          .late_for = 2s,
          .operations_behind = behind,
          .cause = lag > 15ms ? LateCause::slow_data : LateCause::late_call};
}

LaneStatus lane_with(std::uint64_t group, std::vector<ChildStatus> children) {
  return {.group = group, .of_children = std::move(children)};
}

std::vector<LateRank> late_in(const std::vector<LaneStatus>& lanes) {
  std::vector<LateRank> all;
  add_late_ranks(all, lanes);
  return all;
}

TEST(LateRanks, ARankThatIsLateInTwoLanesIsNamedOnceWithItsGreatestFigures) {
  const auto late = late_in({lane_with(7, {late_child(3, 20ms, 1)}), lane_with(7, {late_child(3, 10ms, 2)})});
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0], (LateRank{.group = 7,
                               .rank = 3,
                               .lag = 20ms,
                               .late_for = 2000ms,
                               .operations_behind = 2,
                               .cause = LateCause::slow_data}));
}

TEST(LateRanks, TheTimeForWhichASegmentHasWaitedCountsAsLag) {
  ChildStatus child = late_child(3, 20ms, 1);
  child.waited_for = 5s;
  EXPECT_EQ(late_in({lane_with(7, {child})}).at(0).lag, 5000ms);
}

TEST(LateRanks, ChildrenThatAreOnTimeAndAggregatorsAreLeftOut) {
  ChildStatus on_time = late_child(1, 20ms, 0), aggregator = late_child(2, 20ms, 0);
  on_time.late = false;
  aggregator.rank.reset();
  EXPECT_TRUE(late_in({lane_with(7, {on_time, aggregator})}).empty());
}

TEST(LateRanks, NoMoreAreToldThanOneMessageHas) {
  std::vector<LaneStatus> lanes;
  for (std::uint64_t group = 0; group < 2 * kLateRanksMax; ++group) {
    lanes.push_back(lane_with(group, {late_child(0, 1ms, 0)}));
  }
  EXPECT_EQ(late_in(lanes).size(), kLateRanksMax);
}

TEST(StragglerLog, NewsComeAtMostOnceASecondAndNotAfterTheirEnd) {
  StragglerLog log;
  int news = 0;
  log.on_news([&] { ++news; });
  const auto note = [&](const char* who, bool late) { log.note({.group = 1, .who = who, .late = late}); };
  note("rank 1", true);
  EXPECT_EQ(news, 1);
  for (int i = 0; i < 100; ++i) note("rank 1", i % 2 != 0);
  EXPECT_LE(news, 2) << "a second may have passed on a slow machine";
  log.on_news(nullptr);
  note("rank 2", true);
  EXPECT_LE(news, 2);
}

}  // namespace
}  // namespace tributary::aggregator
