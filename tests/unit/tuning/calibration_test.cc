// Tables from measured times.
#include <gtest/gtest.h>

#include "client/tuning/calibration.h"

namespace tributary::tuning {
namespace {

MeasuredTime of(std::uint64_t bytes, Path path, Algorithm algorithm, double time_us) {
  return {Collective::all_reduce, 4, bytes, path, algorithm, time_us};
}

TEST(Calibration, RulesFollowTheQuickestAndEndHalfWayToTheNextSize) {
  using enum Algorithm;
  const auto rules = rules_of({of(4, Path::tree, ring, 80), of(4, Path::ranks, recursive_doubling, 40),
                               of(4, Path::ranks, ring, 90), of(16, Path::tree, ring, 80),
                               of(16, Path::ranks, recursive_doubling, 41), of(1024, Path::tree, ring, 82),
                               of(1024, Path::ranks, recursive_doubling, 100), of(1024, Path::ranks, ring, 95)});
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0], (Rule{Collective::all_reduce, 4, 4, {128, Path::ranks, recursive_doubling}}));
  EXPECT_EQ(rules[1], (Rule{Collective::all_reduce, 4, 4, {UINT64_MAX, Path::tree, ring}}));
}

TEST(Calibration, FindsTheFiguresThatTimesWereMadeFrom) {
  for (const double link_gbits : {0.2, 1.0, 0.0}) {
    const Figures truth{
        .message_us = 5, .hop_us = 9, .aggregator_us = 2.25, .link_gbits = link_gbits, .core_gbytes = 4};
    std::vector<MeasuredTime> measured;
    for (const std::uint64_t bytes : {8ULL, 4ULL << 20}) {
      const Call call{Collective::all_reduce, 4, bytes};
      measured.push_back(of(bytes, Path::tree, Algorithm::ring, estimate_tree(truth, call).time_us()));
      for (const Algorithm algorithm : schedule::algorithms(call.collective))
        measured.push_back(of(bytes, Path::ranks, algorithm, estimate_ranks(truth, call, algorithm).time_us()));
    }
    const Figures found = calibrated({}, measured);
    EXPECT_NEAR(found.message_us, truth.message_us, 0.2) << link_gbits;
    EXPECT_NEAR(found.hop_us, truth.hop_us, 0.2) << link_gbits;
    EXPECT_NEAR(found.link_gbits, truth.link_gbits, 0.05 * link_gbits);
    if (link_gbits == 0) {
      EXPECT_NEAR(found.core_gbytes, truth.core_gbytes, 0.2);
    }
  }
}

TEST(Calibration, ReplacesWhatWasMeasuredBeforeAndKeepsTheRest) {
  Table table;
  const std::vector<MeasuredTime> first{of(4, Path::ranks, Algorithm::ring, 50)};
  add_measured(table, first, {});
  MeasuredTime other = first[0];
  other.ranks = 8;
  add_measured(table, {other}, table.figures);
  add_measured(table, {of(4, Path::ranks, Algorithm::recursive_doubling, 40)}, table.figures);
  ASSERT_EQ(table.rules.size(), 2U);
  ASSERT_EQ(table.measured.size(), 2U);
  EXPECT_EQ(rule_for(table, {Collective::all_reduce, 4, 4})->step.algorithm, Algorithm::recursive_doubling);
  EXPECT_EQ(rule_for(table, {Collective::all_reduce, 8, 4})->step.algorithm, Algorithm::ring);
  const auto read = parse_table(to_text(table), "t.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, table);
}

}  // namespace
}  // namespace tributary::tuning
