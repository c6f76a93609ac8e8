// Lanes carry unequal shares, so that unequal aggregators end together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/unit/manager/fabrics.h"
#include "tree-manager/planner/lane_weights.h"

namespace tributary::manager {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kMbit = 1'000'000;
constexpr std::uint64_t kWide = 1000 * kMbit;

std::vector<PlanAggregator> aggregators_with(const std::vector<std::uint64_t>& line_rates) {
  std::vector<PlanAggregator> list;
  for (const std::uint64_t rate : line_rates) {
    list.push_back(aggregator_on("agg-" + std::to_string(list.size())));
    list.back().line_rate_bits_per_second = rate;
  }
  return list;
}

/// A group of eight ranks with links of 1 Gbit/s, and aggregators of these rates.
class WeightsTest : public testing::Test {
 protected:
  Plan plan(const std::vector<std::uint64_t>& line_rates, std::uint32_t lanes = 0, bool lane_weights = true) {
    aggregators_ = aggregators_with(line_rates);
    return fabric_->plan({.hosts = hosts_,
                          .aggregators = aggregators_,
                          .lanes = lanes,
                          .lane_weights = lane_weights,
                          .window = 8,
                          .window_is_for_all = true,
                          .segment_bytes = 16U << 10,
                          .link_rate_bits_per_second = kWide},
                         load_);
  }
  static std::vector<std::uint32_t> weights(const Plan& plan) {
    std::vector<std::uint32_t> list;
    for (const LaneTree& lane : plan.lanes) list.push_back(lane.weight);
    return list;
  }
  static std::vector<std::uint32_t> windows(const Plan& plan) {
    std::vector<std::uint32_t> list;
    for (const LaneTree& lane : plan.lanes) list.push_back(lane.window != 0 ? lane.window : plan.window);
    return list;
  }

  const std::vector<std::string> hosts_ = nodes(8);
  std::vector<PlanAggregator> aggregators_;
  const std::unique_ptr<const Fabric> fabric_ = make_fabric(Topology{});
  FabricLoad load_;
};

TEST_F(WeightsTest, ANarrowAggregatorCarriesWhatItCan) {
  const Plan both = plan({250 * kMbit, kWide});
  ASSERT_THAT(both.lanes, SizeIs(2)) << both.reason;
  EXPECT_EQ(both.lanes[0].nodes[0].aggregator, "on-agg-1");
  EXPECT_EQ(both.lanes[1].nodes[0].aggregator, "on-agg-0");
  EXPECT_THAT(weights(both), ElementsAre(4, 1));
  EXPECT_EQ(both.rates.trees, 1250 * kMbit / 8) << "the lanes fill both links";
  const Plan wide = plan({kWide});
  EXPECT_NEAR(both.estimated_seconds / wide.estimated_seconds, 0.8, 0.01);
}

TEST_F(WeightsTest, EachLaneGetsItsPartOfTheWindow) {
  const Plan both = plan({250 * kMbit, kWide});
  EXPECT_THAT(windows(both), ElementsAre(4, 2)) << "the narrow link's queue would overflow with as many segments";
}

TEST_F(WeightsTest, LanesAreEqualUnlessTheRanksDealByWeights) {
  EXPECT_THAT(plan({250 * kMbit, kWide}, 0, false).lanes, SizeIs(1));
  EXPECT_THAT(weights(plan({250 * kMbit, kWide}, 2, false)), ElementsAre(1, 1));
  EXPECT_THAT(weights(plan({250 * kMbit, kWide}, 2)), ElementsAre(4, 1))
      << "the weights hold for a number of lanes that the user sets, too";
}

TEST_F(WeightsTest, EqualAggregatorsGetEqualWeights) {
  for (const std::uint32_t lanes : {0U, 1U, 2U, 3U, 4U}) {
    for (const std::uint32_t weight : weights(plan({kWide, kWide, kWide, kWide}, lanes))) EXPECT_EQ(weight, 1U);
  }
  for (const std::uint32_t weight : weights(plan({kWide, kWide - kWide / 100})))
    EXPECT_EQ(weight, 1U) << "the rates differ by 1 %";
}

TEST_F(WeightsTest, WhereNoRateIsKnownLanesAreEqual) {
  EXPECT_THAT(weights(plan({kWide, 0}, 2)), ElementsAre(1, 1));
}

TEST_F(WeightsTest, AnAggregatorThatOthersUseCarriesLess) {
  load_.aggregators["on-agg-0"] = 4 * kFullRate;  // half of the load that a group of this size causes
  const Plan shared = plan({2 * kWide, kWide, kWide});
  ASSERT_THAT(shared.lanes, SizeIs(3)) << shared.reason;
  std::uint32_t sum = 0, of_shared = 0;
  for (const LaneTree& lane : shared.lanes) {
    sum += lane.weight;
    if (lane.nodes[0].aggregator == "on-agg-0") of_shared = lane.weight;
  }
  EXPECT_LT(3 * of_shared, sum) << "the lanes that share a resource carry less than a third of the bytes";
}

TEST_F(WeightsTest, AddingAndTakingAwayLoadLeavesNothing) {
  const Plan uneven = plan({250 * kMbit, 330 * kMbit, kWide});
  ASSERT_THAT(uneven.lanes, SizeIs(3));
  FabricLoad load;
  fabric_->add(load, uneven.lanes, hosts_);
  EXPECT_LT(load.aggregators.at("on-agg-0"), load.aggregators.at("on-agg-2") / 3);
  EXPECT_GT(load.aggregators.at("on-agg-0"), load.aggregators.at("on-agg-2") / 5);
  fabric_->remove(load, uneven.lanes, hosts_);
  EXPECT_THAT(load.hosts, IsEmpty());
  EXPECT_THAT(load.aggregators, IsEmpty());
}

TEST_F(WeightsTest, UnequalAggregatorsAreNeverSlowerThanEqualShares) {
  std::mt19937 random(7);
  int faster = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<std::uint64_t> rates(1 + random() % 9);
    for (std::uint64_t& rate : rates) rate = kWide * (1 + random() % 16) / 8;
    const Plan equal = plan(rates, 0, false);
    const Plan weighted = plan(rates);
    ASSERT_LE(weighted.estimated_seconds, equal.estimated_seconds * 1.0001) << "round " << round;
    std::uint64_t sum = 0;
    for (const std::uint64_t rate : rates) sum += rate;
    EXPECT_LE(static_cast<double>(weighted.rates.trees), 1.0001 * static_cast<double>(sum) / 8);
    faster += weighted.estimated_seconds < equal.estimated_seconds * 0.97 ? 1 : 0;
  }
  EXPECT_GT(faster, 50);
}

TEST(LaneWeights, FollowWhatEachLaneCanCarry) {
  const LaneBurden apart{.before = {0, 0}, .lanes = {{{0, 8.0}}, {{1, 2.0}}}};
  const auto shares = balanced_shares(apart);
  EXPECT_NEAR(shares[0], 0.2, 0.002);
  EXPECT_THAT(weights_of(shares), ElementsAre(1, 4));
  EXPECT_NEAR(apart.slowest(shares), 1.6, 0.01);
}

TEST(LaneWeights, LanesThatShareWhatBoundsThemEndTogether) {
  // Lanes 0 and 1 share a resource. Lane 2 has a resource of its own, so it carries half.
  const LaneBurden shared{.before = {0, 0}, .lanes = {{{0, 3.0}}, {{0, 3.0}}, {{1, 3.0}}}};
  const auto shares = balanced_shares(shared);
  EXPECT_NEAR(shares[0] + shares[1], 0.5, 0.01);
  EXPECT_NEAR(shares[2], 0.5, 0.01);
}

TEST(LaneWeights, StayWithinTheirBounds) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> shares(1 + random() % 16);
    double sum = 0;
    for (double& share : shares) sum += share = std::pow(10.0, -static_cast<double>(random() % 500) / 100);
    for (double& share : shares) share /= sum;
    std::uint32_t weights = 0;
    for (const std::uint32_t weight : weights_of(shares)) {
      ASSERT_GE(weight, 1U);
      ASSERT_LE(weight, kLaneWeightMax);
      weights += weight;
    }
    ASSERT_LE(weights, 16 * kLaneWeightMax);
  }
}

TEST(LaneWeights, AreTheSmallestThatComeNear) {
  EXPECT_THAT(weights_of({0.25, 0.25, 0.25, 0.25}), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(weights_of({0.3334, 0.6666}), ElementsAre(1, 2));
  EXPECT_THAT(weights_of({0.0001, 0.9999}), ElementsAre(1, kLaneWeightMax));
}

TEST(LaneTreeWeights, WeightsOutOfBoundsAreRefused) {
  for (const std::uint32_t weight : {0U, kLaneWeightMax + 1, UINT32_MAX}) {
    LaneTree lane{.nodes = {{.aggregator = "a"}}, .leaf_of_rank = {0, 0}, .weight = weight};
    EXPECT_FALSE(lane.finish().has_value()) << weight;
  }
  LaneTree lane{.nodes = {{.aggregator = "a"}}, .leaf_of_rank = {0, 0}, .window = kWindowMax + 1};
  EXPECT_FALSE(lane.finish().has_value());
}

}  // namespace
}  // namespace tributary::manager
