// The policy of a group, which rank 0 makes from tables and the model, and sends in the welcome.
#include <gtest/gtest.h>

#include "client/tuning/table.h"

namespace tributary::tuning {
namespace {

void expect_lawful(const Policy& policy, const std::string& what) {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    const Steps& steps = policy.steps(collective);
    ASSERT_FALSE(steps.empty()) << what;
    EXPECT_EQ(steps.back().bytes_max, UINT64_MAX) << what;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      if (s > 0) {
        EXPECT_LT(steps[s - 1].bytes_max, steps[s].bytes_max) << what;
      }
      EXPECT_TRUE(steps[s].path == Path::ranks || in_network_capable(collective)) << what;
      EXPECT_NO_THROW(schedule::Schedule({.collective = collective, .algorithm = steps[s].algorithm, .ranks = 3}))
          << what;
    }
  }
}

TEST(Policy, TakesEachWayBetweenTheRanksAtItsOwnRate) {
  const PathRates rates{.links = 5'000'000'000,
                        .trees = 6'000'000'000,
                        .ranks = 4'000'000'000,
                        .doubling = 1'000'000'000,
                        .halving = 2'000'000'000,
                        .spread = 3'000'000'000};
  const Figures figures = with_trees({}, {.rates = rates});
  EXPECT_EQ(figures.ring_gbits, 4);
  EXPECT_EQ(figures.doubling_gbits, 1);
  EXPECT_EQ(figures.halving_gbits, 2);
  EXPECT_EQ(figures.spread_gbits, 3);
  for (std::uint64_t PathRates::* rate : {&PathRates::doubling, &PathRates::halving, &PathRates::spread}) {
    PathRates others = rates;
    others.*rate /= 2;
    EXPECT_TRUE(differ(rates, others));
  }
  EXPECT_FALSE(differ(rates, rates));
}

TEST(Policy, HasOneAnswerForEverySizeAndAlgorithmsThatTheCollectiveHas) {
  for (std::uint32_t ranks = 1; ranks < 40; ++ranks) {
    for (const bool one_host : {false, true}) {
      const GroupShape shape{.ranks = ranks, .ranks_per_host = one_host ? ranks : 1, .one_host = one_host};
      const std::string what = std::to_string(ranks) + " ranks";
      expect_lawful(default_policy(shape, 2), what);
      expect_lawful(trees_always(shape), what);
      expect_lawful(policy_of(Table{}, shape), what);
    }
  }
  expect_lawful(Policy(), "before the ranks have met");
}

TEST(Policy, RulesAgreeWithTheModelOnBothSidesOfTheirLimits) {
  const Figures figures;
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::broadcast}) {
    std::uint64_t first = 0;
    for (const Step& step : model_steps(figures, collective, 8)) {
      for (const std::uint64_t bytes : {first, step.bytes_max}) {
        if (bytes > 1ULL << 42) continue;
        const auto best = estimates(figures, {collective, 8, bytes}).front();
        EXPECT_EQ(best.path, step.path) << bytes;
        if (best.path == Path::ranks) {
          EXPECT_EQ(best.algorithm, step.algorithm) << bytes;
        }
      }
      first = step.bytes_max + 1;
    }
  }
}

TEST(Policy, StartsFromTheRateOfTheHostsLinkWhichTheRanksOfAHostShare) {
  const std::uint64_t link = 25'000'000'000;
  Figures figures = default_figures({.ranks = 8, .link_rate = link}, 2);
  EXPECT_EQ(figures.link_gbits, 25);
  figures = default_figures({.ranks = 8, .ranks_per_host = 4, .link_rate = link}, 2);
  EXPECT_EQ(figures.link_gbits, 6.25);
  EXPECT_EQ(figures.ring_gbits, 25) << "one edge of the ring leaves a host";
  figures = default_figures({.ranks = 8, .ranks_per_host = 8, .one_host = true, .link_rate = link}, 2);
  EXPECT_EQ(figures.link_gbits, 0) << "there is no link between ranks of one host";
}

TEST(Policy, UsesTreesForAllOperationsThatTheyCanCarryWhenTuningIsOff) {
  const Policy policy = trees_always({.ranks = 2});
  for (const std::uint64_t bytes : {0ULL, 4ULL, 1ULL << 40}) {
    EXPECT_EQ(policy.at(Collective::all_reduce, bytes).path, Path::tree);
    EXPECT_EQ(policy.at(Collective::barrier, bytes).path, Path::tree);
    EXPECT_EQ(policy.at(Collective::all_to_all, bytes).path, Path::ranks);
  }
}

TEST(Policy, FollowsTheFirstRuleThatFitsAndTheModelWhereNoneDoes) {
  Table table;
  const auto rule = [&](std::uint32_t least, std::uint32_t most, std::uint64_t bytes_max, Path path, Algorithm a) {
    table.rules.push_back({Collective::all_reduce, least, most, {bytes_max, path, a}});
  };
  rule(4, 8, 1000, Path::tree, Algorithm::ring);
  rule(4, 8, 500, Path::ranks, Algorithm::ring);  // never used: the rule before it comes first
  rule(4, 4, 5000, Path::ranks, Algorithm::halving_doubling);
  const Policy four = policy_of(table, {.ranks = 4});
  const auto expect = [](const Step& step, Path path, Algorithm algorithm) {
    EXPECT_EQ(step.path, path);
    EXPECT_EQ(step.algorithm, algorithm);
  };
  expect(four.at(Collective::all_reduce, 0), Path::tree, Algorithm::ring);
  expect(four.at(Collective::all_reduce, 1000), Path::tree, Algorithm::ring);
  expect(four.at(Collective::all_reduce, 1001), Path::ranks, Algorithm::halving_doubling);
  expect(four.at(Collective::all_reduce, 5000), Path::ranks, Algorithm::halving_doubling);
  EXPECT_EQ(four.at(Collective::all_reduce, 1 << 20), policy_of({}, {.ranks = 4}).at(Collective::all_reduce, 1 << 20));
  EXPECT_EQ(policy_of(table, {.ranks = 9}), policy_of({}, {.ranks = 9})) << "no rule is for 9 ranks";
  for (const std::uint64_t bytes : {0ULL, 500ULL, 1000ULL, 1001ULL, 5000ULL})
    EXPECT_EQ(rule_for(table, {Collective::all_reduce, 4, bytes})->step, four.at(Collective::all_reduce, bytes));
  EXPECT_EQ(rule_for(table, {Collective::all_reduce, 4, 5001}), nullptr);
}

TEST(Policy, IsTheSameAfterWritingAndReading) {
  for (const std::uint32_t ranks : {1U, 2U, 5U, 8U, 1000U}) {
    const Policy policy = default_policy({.ranks = ranks}, 4);
    const auto arrived = decode_policy(encode(policy));
    ASSERT_TRUE(arrived) << arrived.error().message;
    EXPECT_EQ(*arrived, policy);
  }
}

TEST(Policy, SplitsByTheRatesOfTheTrees) {
  const GroupShape shape{.ranks = 8};
  constexpr std::uint64_t kGbit = 1'000'000'000;
  constexpr std::uint64_t kLarge = 64 << 20;
  // The links of all aggregators together have 1/8, 1/2 and all of the rate of the ranks' links.
  const auto at = [&](std::uint64_t trees) {
    const Policy policy = default_policy(shape, 64, {.rates = {.links = kGbit, .trees = trees, .ranks = kGbit}});
    const auto arrived = decode_policy(encode(policy));
    EXPECT_TRUE(arrived && *arrived == policy);
    return policy.at(Collective::all_reduce, kLarge);
  };
  constexpr std::uint64_t kEighth = kGbit / 8, kHalf = kGbit / 2;
  const auto bound = [](double c) { return c * 1.75 / (1 + c * 0.75); };
  EXPECT_EQ(at(kEighth).path, Path::split);
  EXPECT_NEAR(at(kEighth).tree_share, bound(0.125) * kWholeShare, 0.03 * kWholeShare);
  EXPECT_EQ(at(kHalf).path, Path::split);
  EXPECT_NEAR(at(kHalf).tree_share, bound(0.5) * kWholeShare, 0.03 * kWholeShare);
  EXPECT_EQ(at(kGbit).path, Path::tree);
  EXPECT_EQ(at(8 * kGbit).path, Path::tree);
  EXPECT_EQ(at(0).path, Path::tree) << "the trees' rate is not known";
  EXPECT_EQ(default_policy(shape, 64, {.rates = {.links = kGbit, .trees = kGbit / 8, .ranks = kGbit}})
                .at(Collective::all_reduce, 4),
            default_policy(shape, 64, {.rates = {.links = kGbit, .trees = kGbit, .ranks = kGbit}})
                .at(Collective::all_reduce, 4))
      << "rates do not matter to a few bytes";
}

// Eight ranks, and eight aggregators with links like the ranks' links. 64 KiB are four segments. Each segment takes one
// aggregator's link for a millisecond on the way up and for a millisecond on the way down; a ring takes a millisecond
// in all (measured: 1.8 and 1.1 ms).
TEST(Policy, OperationsThatAreTooShortForManyNarrowLanesGoBetweenTheRanks) {
  constexpr std::uint64_t kGbit = 1'000'000'000;
  for (const std::uint32_t lanes : {1U, 2U, 4U, 8U}) {
    const TreeShape trees{.rates = {.links = kGbit, .trees = kGbit / 8 * lanes, .ranks = kGbit},
                          .lanes = lanes,
                          .levels = 1,
                          .segment_bytes = 16 << 10};
    const Policy policy = default_policy({.ranks = 8}, 64, trees);
    EXPECT_EQ(policy.at(Collective::all_reduce, 64 << 10).path, Path::ranks) << lanes;
    EXPECT_NE(policy.at(Collective::all_reduce, 256 << 10).path, Path::tree) << lanes;
    EXPECT_NE(policy.at(Collective::all_reduce, 64 << 20).path, Path::ranks) << lanes;
    std::uint32_t share = 0;
    for (const Step& step : policy.steps(Collective::all_reduce)) {
      if (step.path != Path::split) continue;
      EXPECT_GE(step.tree_share, share) << "longer operations give the trees no less: " << step.bytes_max;
      share = step.tree_share;
    }
    EXPECT_LT(policy.steps(Collective::all_reduce).size(), 200U) << "rank 0 sends these steps to every rank";
  }
}

TEST(Policy, ASplitMustPay) {
  constexpr std::uint64_t kGbit = 1'000'000'000;
  // One aggregator for 64 ranks would save 1.5 %.
  const TreeShape trees{.rates = {.links = kGbit, .trees = kGbit / 64, .ranks = kGbit}, .levels = 1};
  EXPECT_EQ(default_policy({.ranks = 64}, 64, trees).at(Collective::all_reduce, 64 << 20).path, Path::ranks);
}

// Uplinks let a ring use only a quarter of the ranks' links. The rest of these links is free, so the trees get more.
TEST(Policy, ANarrowRingLeavesMoreToTheTrees) {
  constexpr std::uint64_t kGbit = 1'000'000'000;
  const auto share = [](std::uint64_t ring) {
    const TreeShape trees{.rates = {.links = kGbit, .trees = kGbit / 4, .ranks = ring}, .levels = 1};
    return default_policy({.ranks = 8}, 64, trees).at(Collective::all_reduce, 64 << 20).tree_share;
  };
  EXPECT_NEAR(share(kGbit), 0.25 * 1.75 / (1 + 0.25 * 0.75) * kWholeShare, 0.03 * kWholeShare);
  EXPECT_NEAR(share(kGbit / 4), 1.75 / 2.75 * kWholeShare, 0.03 * kWholeShare)
      << "the ring takes 7 units of time for a byte, and the trees take 4";
}

TEST(Policy, RefusesAnInvalidShare) {
  const Policy policy =
      default_policy({.ranks = 8}, 64, {.rates = {.links = 8'000'000, .trees = 4'000'000, .ranks = 8'000'000}});
  const std::string good = encode(policy);
  const auto at = good.find("\"split\",\"");
  ASSERT_NE(at, std::string::npos) << good;
  const auto comma = good.find(',', good.find(',', at) + 1);
  const auto end = good.find(']', comma);
  for (const std::string share : {"", ",0", ",65536", ",-1", ",\"half\"", ",1,1"}) {
    std::string text = good;
    text.replace(good.find(',', at + 8), end - good.find(',', at + 8), ",\"ring\"" + share);
    EXPECT_FALSE(decode_policy(text)) << text;
  }
}

TEST(Policy, RefusesWhatIsMalformed) {
  const std::string good = encode(default_policy({.ranks = 4}, 2));
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{}"), good.substr(0, good.size() / 2),
                                  broken("\"barrier\"", "\"barriers\""), broken("18446744073709551615", "7"),
                                  broken("18446744073709551615", "-1"), broken("\"dissemination\"", "\"ring\""),
                                  broken("\"ranks\"", "\"air\""), broken("\"ranks\"", "3")}) {
    const auto policy = decode_policy(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().code, Errc::corrupt);
  }
}

TEST(Policy, TakesTheSharesOfLanesFromTheTreesInUse) {
  GroupDescriptor trees;
  trees.lanes = {{.segment_bytes = 4096, .levels = 1, .weight = 2}, {.segment_bytes = 4096, .levels = 2, .weight = 8}};
  trees.rates = {.links = 10'000'000'000, .trees = 5'000'000'000, .ranks = 10'000'000'000};
  const TreeShape shape = shape_of(trees);
  EXPECT_EQ(shape.lanes, 2U);
  EXPECT_EQ(shape.lane_cycle, 5U);
  EXPECT_EQ(shape.levels, 2U);
  const Figures figures = with_trees({}, shape);
  EXPECT_DOUBLE_EQ(figures.lightest_lane, 0.2);
  EXPECT_DOUBLE_EQ(figures.heaviest_lane, 0.8);
  EXPECT_EQ(figures.segment_bytes, 4096U);
  EXPECT_DOUBLE_EQ(figures.trees_gbits, 5);
}

}  // namespace
}  // namespace tributary::tuning
