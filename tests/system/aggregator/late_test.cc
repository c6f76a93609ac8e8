// A real aggregator names the rank for which the others wait: in its log, its metrics and its page of lanes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/system/aggregator/daemon_rig.h"

namespace tributary::aggregator::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

class DaemonLate : public DaemonTest {
 protected:
  /// Lets these ranks contribute to the next segment.
  void contribute(const std::vector<Child*>& ranks, const std::vector<std::uint32_t>& those) {
    for (const std::uint32_t rank : those) ranks[rank]->contribute(sequence_, kSum, bytes_of(floats(rank, 16)));
  }
  [[nodiscard]] bool late_is(const DaemonProcess& root, double number) {
    return run_until([&] { return root.metric("late_children") == number; }, std::chrono::seconds(60));
  }
  std::uint64_t sequence_ = 0;
};

TEST_F(DaemonLate, NamesTheLateRankWhileTheOthersWaitAndStopsWhenItKeepsUp) {
  DaemonProcess& root = aggregator("root");
  const auto ranks = lane_of(root, 4);
  contribute(ranks, {0, 1, 3});
  ASSERT_TRUE(late_is(root, 1));
  EXPECT_THAT(root.process.output(),
              HasSubstr("rank 2 of job 'training' (group 4711) is late: 3 others wait for it for "));
  const json lane = root.lanes().at(0);
  EXPECT_EQ(lane.at("waits_for"), json::array({"rank 2"}));
  EXPECT_GT(lane.at("waits_seconds").get<double>(), 0.5);
  EXPECT_EQ(lane.at("of_children").at(2).at("late"), true);
  EXPECT_EQ(lane.at("of_children").at(1).at("late"), false);

  contribute(ranks, {2});
  ASSERT_TRUE(run_until([&] { return ranks[0]->result_of(0) != nullptr; }));
  EXPECT_EQ(root.lanes().at(0).at("of_children").at(2).at("last"), 1);
  EXPECT_EQ(root.metric("lag_seconds_count"), 4);
  EXPECT_GT(root.metric("lag_seconds_sum"), 0.5);
  EXPECT_THAT(root.process.output(), Not(HasSubstr("is no longer late")));
  ASSERT_TRUE(late_is(root, 0)) << "no rank waits, and some seconds pass";
  EXPECT_TRUE(eventually([&] {
    return root.process.output().contains("rank 2 of job 'training' (group 4711) is no longer late");
  })) << root.process.output();
}

}  // namespace
}  // namespace tributary::aggregator::test
