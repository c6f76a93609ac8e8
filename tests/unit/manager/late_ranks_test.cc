// The manager takes the word of a group's own aggregators about late ranks.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;

class LateRanks : public ClusterFixture {
 protected:
  void SetUp() override {
    open();
    enlist_all();
    const auto granted = ask();
    ASSERT_TRUE(granted.has_value());
    group_ = granted->descriptor.group;
  }
  void tell(const std::string& aggregator, std::vector<LateRank> late) {
    ASSERT_TRUE(cluster_->renew_aggregator(aggregator, std::nullopt, {.late = std::move(late)}).has_value());
  }
  [[nodiscard]] std::vector<LateRank> late() const { return cluster_->group(group_)->late; }
  [[nodiscard]] LateRank word(std::uint32_t rank, std::chrono::milliseconds lag) const {
    return {.group = group_, .rank = rank, .lag = lag, .late_for = 1000ms, .operations_behind = 3};
  }
  std::uint64_t group_ = 0;
};

TEST_F(LateRanks, TheListingAndRankZeroLearnTheRankItsHostAndItsLag) {
  tell("leaf-b", {word(2, 812ms)});
  const std::string host = cluster_->group(group_)->record->hosts.at(2);
  LateRank expected = word(2, 812ms);
  expected.host = host;
  EXPECT_EQ(late(), std::vector{expected});
  EXPECT_EQ(cluster_->renew_group(group_)->late, std::vector{expected});
  EXPECT_EQ(cluster_->groups().at(0).late, std::vector{expected});
  clock_.advance(500ms);
  EXPECT_EQ(late().at(0).late_for, 1500ms) << "the time since the aggregator's word counts";
  tell("leaf-b", {});
  EXPECT_TRUE(late().empty());
}

TEST_F(LateRanks, TheGreatestLagComesFirstAndARankComesOnce) {
  tell("leaf-a", {word(0, 5ms), word(1, 20ms)});
  tell("leaf-b", {word(2, 100ms), word(1, 30ms)});
  std::vector<std::pair<std::uint32_t, std::chrono::milliseconds>> told;
  for (const LateRank& one : late()) told.emplace_back(one.rank, one.lag);
  using Told = std::pair<std::uint32_t, std::chrono::milliseconds>;
  EXPECT_THAT(told, testing::ElementsAre(Told(2, 100ms), Told(1, 30ms), Told(0, 5ms)));
}

TEST_F(LateRanks, AnAggregatorThatIsNotInTheGroupsTreesNamesNoRankOfIt) {
  ASSERT_TRUE(enlist("stranger", "node-0").has_value());
  ASSERT_FALSE(uses(group_, "stranger"));
  tell("stranger", {word(1, 812ms)});
  EXPECT_TRUE(late().empty());
}

TEST_F(LateRanks, ARankThatTheGroupDoesNotHaveIsNotNamed) {
  tell("leaf-a", {word(4, 812ms)});
  EXPECT_TRUE(late().empty());
}

TEST_F(LateRanks, TheWordOfAnAggregatorThatHasGoneDoesNotCount) {
  tell("leaf-b", {word(2, 812ms)});
  ASSERT_EQ(late().size(), 1U);
  const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(settings_.aggregator_lease);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(cluster_->renew_group(group_).has_value());
    advance(lease * 6 / 10);
  }
  EXPECT_TRUE(late().empty());
}

}  // namespace
}  // namespace tributary::manager
