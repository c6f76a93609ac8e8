// The cost model: right results where these are known, and plausible results over sizes and numbers of ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "client/tuning/cost_model.h"

namespace tributary::tuning {
namespace {

constexpr Figures kOneMachine{.cores = 2, .ranks_per_host = 1U << 20};  // all ranks are on one host
constexpr Figures kLoopback{.link_gbits = 0, .cores = 2, .ranks_per_host = 1U << 20};

Estimate best(const Figures& figures, Collective collective, std::uint32_t ranks, std::uint64_t bytes) {
  return estimates(figures, {.collective = collective, .ranks = ranks, .bytes = bytes}).front();
}

Estimate best_between_ranks(const Figures& figures, Collective collective, std::uint32_t ranks, std::uint64_t bytes) {
  for (const Estimate& e : estimates(figures, {.collective = collective, .ranks = ranks, .bytes = bytes})) {
    if (e.path == Path::ranks) return e;
  }
  return {};
}

// The ranges contain the times measured on two cores.
TEST(CostModel, AgreesWithTheMeasuredTimesOfFourBytesOnTwoCores) {
  const auto tree = [](std::uint32_t ranks) {
    return estimate_tree(kLoopback, {Collective::all_reduce, ranks, 4}).time_us();
  };
  const auto doubling = [](std::uint32_t ranks) {
    return estimate_ranks(kLoopback, {Collective::all_reduce, ranks, 4}, Algorithm::recursive_doubling).time_us();
  };
  EXPECT_NEAR(doubling(2), 12, 3);
  EXPECT_NEAR(doubling(4), 53, 11);
  EXPECT_NEAR(doubling(8), 168, 39);
  EXPECT_NEAR(tree(2), 41, 7);
  EXPECT_NEAR(tree(4), 80, 8);
  EXPECT_NEAR(tree(8), 148, 21);
}

TEST(CostModel, SendsSmallOperationsOfFewRanksBetweenThemAndLargeOnesThroughTheTree) {
  for (const std::uint64_t bytes : {4ULL, 1ULL << 10}) {
    EXPECT_EQ(best(kOneMachine, Collective::all_reduce, 4, bytes).path, Path::ranks) << bytes;
    EXPECT_EQ(best(kOneMachine, Collective::all_reduce, 4, bytes).algorithm, Algorithm::recursive_doubling) << bytes;
  }
  EXPECT_EQ(best(kOneMachine, Collective::all_reduce, 8, 4).path, Path::tree);
  for (const std::uint32_t ranks : {4U, 5U, 8U, 16U, 64U}) {
    for (std::uint64_t bytes = 64 << 10; bytes <= 1ULL << 34; bytes *= 2) {
      EXPECT_EQ(best({}, Collective::all_reduce, ranks, bytes).path, Path::tree) << ranks << " ranks, " << bytes;
    }
  }
}

// The lane with the smallest share gets a segment more than its share, and so takes longest.
TEST(CostModel, CountsTheSegmentThatALightLaneHasTooMany) {
  Figures figures{.link_gbits = 1, .trees_gbits = 0.15625, .lanes = 2, .levels = 1};
  const auto time = [&](std::uint64_t segments) {
    return estimate_tree(figures, {Collective::all_reduce, 8, segments * figures.segment_bytes}).transfer_us;
  };
  const double equal = time(64);
  figures.lightest_lane = 0.5;
  EXPECT_DOUBLE_EQ(time(64), equal);
  figures.lightest_lane = 0.2;
  const double segment_us = figures.segment_bytes / (0.15625 * 125 * 0.2);  // on the lane with the smaller weight
  EXPECT_NEAR(time(70) - time(65), segment_us, 0.01) << "one lane has 14 segments instead of 13";
  EXPECT_NEAR(time(69), time(66), 0.01) << "the longest lane has 14 segments in both";
  EXPECT_LT(std::abs(time(640) / 10 / time(64) - 1), 0.1) << "long operations take what the trees' rate says";
}

/// Four aggregators of four ranks, all with links of this rate.
Figures wide(double gbits, std::uint32_t aggregators = 4) {
  return {.link_gbits = gbits,
          .trees_gbits = gbits * aggregators / 4,
          .lanes = aggregators,
          .lane_cycle = aggregators,
          .levels = 1,
          .cores = 16,
          .segment_bytes = 32 << 10};
}

// With four lanes, 64 MiB were measured to take 60.8 ms.
TEST(CostModel, GivesEachLaneACoreOfItsAggregator) {
  const Call call{Collective::all_reduce, 4, 64 << 20};
  EXPECT_NEAR(estimate_tree(wide(10), call).time_us(), 60'800, 2'000);
  EXPECT_NE(estimates(wide(10), call).front().path, Path::ranks);
  EXPECT_GT(estimate_tree(wide(10, 1), call).time_us(), 200'000) << "one core for all bytes";
  Figures unequal = wide(10);
  unequal.heaviest_lane = 0.5;
  EXPECT_NEAR(estimate_tree(unequal, call).transfer_us, 2 * estimate_tree(wide(10), call).transfer_us, 1'000)
      << "the lane with half of the bytes takes longest";
}

TEST(CostModel, GivesTreesAShareThatTheirCoresCarryInTime) {
  const Call call{Collective::all_reduce, 4, 64 << 20};
  for (const double gbits : {25.0, 100.0, 400.0}) {
    const auto split = estimate_split(wide(gbits), call, Algorithm::ring);
    ASSERT_TRUE(split) << gbits;
    const double share = static_cast<double>(split->tree_share) / kWholeShare;
    EXPECT_LT(share * estimate_tree(wide(gbits), call).time_us(), 1.02 * split->time_us()) << gbits << " Gbit/s";
    EXPECT_GT(share, 0.3) << gbits << " Gbit/s";
  }
}

// Copies of 64 MiB at 10 GB/s take 6.7 ms in each direction. They overlap with a tree's transfer, and not with the ranks'.
TEST(CostModel, CountsTheCopiesOfGpusThatTheNetworkDoesNotReach) {
  const Call call{Collective::all_reduce, 4, 64 << 20};
  Figures staged = wide(10);
  staged.staging_gbytes = 10;
  const double copy_us = (64 << 20) / 10e3, chunk_us = (1 << 20) / 10e3;
  EXPECT_NEAR(estimate_tree(staged, call).time_us() - estimate_tree(wide(10), call).time_us(), 2 * chunk_us, 0.1);
  const auto ring = [&](const Figures& figures) { return estimate_ranks(figures, call, Algorithm::ring).time_us(); };
  EXPECT_NEAR(ring(staged) - ring(wide(10)), 2 * copy_us, 0.1);
  const Call scattered{Collective::reduce_scatter, 4, 64 << 20};
  EXPECT_NEAR(estimate_ranks(staged, scattered, Algorithm::ring).time_us() -
                  estimate_ranks(wide(10), scattered, Algorithm::ring).time_us(),
              1.25 * copy_us, 0.1)
      << "the whole vector comes down, and a quarter of it goes up";
  staged.staging_gbytes = 0.5;
  EXPECT_NEAR(estimate_tree(staged, call).time_us(), 20 * copy_us + 40 * chunk_us, 2 * 12.0 * 18)
      << "slow copies are the bound";
}

TEST(CostModel, GivesTreesMoreOfASplitWhereTheRanksWaitForCopies) {
  const Call call{Collective::all_reduce, 4, 64 << 20};
  Figures narrow = wide(25, 2), staged = narrow;
  staged.staging_gbytes = 20;
  const auto plain = estimate_split(narrow, call, Algorithm::ring),
             copied = estimate_split(staged, call, Algorithm::ring);
  ASSERT_TRUE(plain);
  ASSERT_TRUE(copied);
  EXPECT_GT(copied->tree_share, plain->tree_share);
  EXPECT_GT(copied->time_us(), plain->time_us());
  EXPECT_NE(estimates(staged, call).front().path, Path::ranks);
}

TEST(CostModel, CountsTheUplinksThatEachWayBetweenTheRanksCrosses) {
  const Figures even{.link_gbits = 100, .ring_gbits = 100, .core_gbytes = 100, .cores = 64};
  Figures narrow = even;
  narrow.doubling_gbits = 40;
  narrow.halving_gbits = 50;
  narrow.spread_gbits = 20;
  const auto slower = [&](Collective collective, Algorithm algorithm) {
    const Call call{collective, 16, 64 << 20};
    return estimate_ranks(narrow, call, algorithm).transfer_us / estimate_ranks(even, call, algorithm).transfer_us;
  };
  EXPECT_DOUBLE_EQ(slower(Collective::all_reduce, Algorithm::ring), 1);
  EXPECT_DOUBLE_EQ(slower(Collective::all_reduce, Algorithm::recursive_doubling), 2.5);
  EXPECT_DOUBLE_EQ(slower(Collective::all_reduce, Algorithm::halving_doubling), 2);
  EXPECT_DOUBLE_EQ(slower(Collective::reduce_scatter, Algorithm::direct), 5);
  EXPECT_DOUBLE_EQ(slower(Collective::all_gather, Algorithm::bruck), 5);
  EXPECT_DOUBLE_EQ(slower(Collective::all_to_all, Algorithm::pairwise), 5);
  EXPECT_DOUBLE_EQ(slower(Collective::broadcast, Algorithm::binomial), 1);
}

TEST(CostModel, PrefersARingWhereFarPartnersShareAnUplink) {
  const auto algorithm = [](double halving_gbits) {
    const Figures figures{.link_gbits = 20, .ring_gbits = 20, .halving_gbits = halving_gbits, .cores = 64};
    return best_between_ranks(figures, Collective::all_reduce, 8, 1 << 20).algorithm;
  };
  EXPECT_EQ(algorithm(20), Algorithm::halving_doubling);
  EXPECT_EQ(algorithm(8), Algorithm::ring);
}

TEST(CostModel, NeverNeedsATreeForTwoRanks) {
  for (const Figures& figures : {Figures{}, kOneMachine, kLoopback}) {
    for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
      for (std::uint64_t bytes = 1; bytes <= 1ULL << 36; bytes *= 2) {
        EXPECT_EQ(best(figures, static_cast<Collective>(i), 2, bytes).path, Path::ranks)
            << to_string(static_cast<Collective>(i)) << " of " << bytes;
      }
    }
  }
}

// Without links, a tree saves no time by sending every byte only once: it moves each byte through one more process.
TEST(CostModel, NeedsNoTreeForLargeOperationsWithinOneHost) {
  for (const std::uint32_t ranks : {4U, 8U}) {
    EXPECT_EQ(best(kLoopback, Collective::all_reduce, ranks, 16 << 20).path, Path::ranks);
    EXPECT_EQ(best(kLoopback, Collective::all_reduce, ranks, 16 << 20).algorithm, Algorithm::ring);
  }
}

// Both algorithms send equally many bytes. But in place, recursive doubling must first copy its input away, and it
// reduces twice as much.
TEST(CostModel, SavesTwoRanksTheCopyOfALargeInput) {
  for (const Figures& figures : {Figures{}, kOneMachine, kLoopback}) {
    for (const std::uint64_t bytes : {4ULL, 4ULL << 10, 64ULL << 10})
      EXPECT_EQ(best(figures, Collective::all_reduce, 2, bytes).algorithm, Algorithm::recursive_doubling) << bytes;
    for (const std::uint64_t bytes : {256ULL << 10, 1ULL << 20, 16ULL << 20, 1ULL << 30})
      EXPECT_EQ(best(figures, Collective::all_reduce, 2, bytes).algorithm, Algorithm::ring) << bytes;
  }
}

TEST(CostModel, ChoosesFewRoundsForSmallSizesAndFewBytesForLargeOnes) {
  const auto algorithm = [](Collective collective, std::uint32_t ranks, std::uint64_t bytes) {
    return best_between_ranks(Figures{.link_gbits = 20, .cores = 64}, collective, ranks, bytes).algorithm;
  };
  EXPECT_EQ(algorithm(Collective::all_reduce, 8, 1 << 10), Algorithm::recursive_doubling);
  EXPECT_EQ(algorithm(Collective::all_reduce, 8, 1 << 20), Algorithm::halving_doubling);
  EXPECT_EQ(algorithm(Collective::all_reduce, 8, 1 << 26), Algorithm::ring);
  EXPECT_EQ(algorithm(Collective::all_reduce, 5, 512 << 10), Algorithm::ring);
  EXPECT_EQ(algorithm(Collective::broadcast, 8, 1 << 10), Algorithm::binomial);
  EXPECT_EQ(algorithm(Collective::broadcast, 8, 1 << 26), Algorithm::scatter_all_gather);
  EXPECT_EQ(algorithm(Collective::broadcast, 2, 1 << 26), Algorithm::binomial);
  EXPECT_EQ(algorithm(Collective::reduce, 8, 1 << 26), Algorithm::reduce_scatter_gather);
  EXPECT_EQ(algorithm(Collective::reduce_scatter, 8, 1 << 10), Algorithm::direct);
  EXPECT_EQ(algorithm(Collective::reduce_scatter, 8, 1 << 26), Algorithm::ring);
  EXPECT_EQ(algorithm(Collective::all_gather, 8, 1 << 10), Algorithm::bruck);
  EXPECT_EQ(algorithm(Collective::all_gather, 8, 1 << 26), Algorithm::ring);
  EXPECT_EQ(algorithm(Collective::gather, 16, 1 << 10), Algorithm::binomial);
  EXPECT_EQ(algorithm(Collective::gather, 16, 1 << 26), Algorithm::linear);
}

TEST(CostModel, TakesNoLessForMoreBytesOrASlowerLink) {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    for (const std::uint32_t ranks : {2U, 3U, 4U, 7U, 8U, 100U}) {
      for (std::uint64_t bytes = 1; bytes < 1ULL << 34; bytes *= 2) {
        const auto at = [&](const Figures& figures, std::uint64_t size) {
          std::vector<double> times;
          const Call call{collective, ranks, size};
          if (in_network_capable(collective)) times.push_back(estimate_tree(figures, call).time_us());
          for (const Algorithm algorithm : schedule::algorithms(collective))
            times.push_back(estimate_ranks(figures, call, algorithm).time_us());
          return times;
        };
        const auto here = at({}, bytes), more = at({}, 2 * bytes), faster = at({.link_gbits = 10}, bytes);
        for (std::size_t way = 0; way < here.size(); ++way) {
          EXPECT_LE(here[way], more[way]) << to_string(collective) << " " << ranks << " " << bytes;
          EXPECT_GE(here[way], faster[way]) << to_string(collective) << " " << ranks << " " << bytes;
        }
      }
    }
  }
}

TEST(CostModel, CountsTheLargerOfTheTwoBuffers) {
  EXPECT_EQ(amount_in_all(Collective::all_reduce, 100, 8), 100U);
  EXPECT_EQ(amount_in_all(Collective::all_gather, 100, 8), 800U);
  EXPECT_EQ(amount_in_all(Collective::reduce_scatter, 100, 8), 800U);
  EXPECT_EQ(amount_in_all(Collective::barrier, 100, 8), 0U);
  EXPECT_EQ(amount_in_all(Collective::all_to_all, 1ULL << 62, 1U << 31), UINT64_MAX) << "the sum must not wrap";
}

}  // namespace
}  // namespace tributary::tuning
