#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "client/cli/budget/budget.h"
#include "client/cli/budget/budget_report.h"

namespace tributary::cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

/// 1e9 parameters of 2 bytes are 2e9 bytes. A link of 16 Gbit/s carries 2e9 bytes in a second.
BudgetInput one_second() {
  return {.parameters = 1'000'000'000,
          .ranks = 4,
          .rank_rate = 16'000'000'000,
          .aggregators = 2,
          .aggregator_rate = 16'000'000'000};
}

TEST(Budget, GivesEachWayItsBytesAndItsTime) {
  // rho = 2 x 3 / 4 = 1.5; c = 2 / 4; the split's denominator is 1 + 0.5 x 0.5 = 1.25.
  const Budget budget = budget_of(one_second());
  EXPECT_DOUBLE_EQ(budget.bytes, 2e9);
  EXPECT_DOUBLE_EQ(budget.coverage, 0.5);
  EXPECT_DOUBLE_EQ(budget.ring.bytes, 3e9);
  EXPECT_DOUBLE_EQ(budget.ring.seconds, 1.5);
  EXPECT_DOUBLE_EQ(budget.tree.bytes, 2e9);
  EXPECT_DOUBLE_EQ(budget.tree.seconds, 2);  // the aggregators are the limit
  EXPECT_DOUBLE_EQ(budget.split.bytes, 2.4e9);
  EXPECT_DOUBLE_EQ(budget.split.seconds, 1.2);
  EXPECT_DOUBLE_EQ(budget.tree_share, 0.6);
  EXPECT_EQ(budget.aggregators_enough, 4U);
  EXPECT_FALSE(budget.verdict);
}

TEST(Budget, LetsBothPartsOfTheSplitEndTogether) {
  for (const double ratio : {1.0, 1.5, 1.75, 1.998}) {
    for (const double coverage : {1e-3, 0.1, 0.5, 0.9, 1.0}) {
      const double share = tree_share_of(ratio, coverage);
      EXPECT_NEAR(share / coverage, split_ratio(ratio, coverage), 1e-12) << "the time of the aggregators' links";
      EXPECT_NEAR(share + (1 - share) * ratio, split_ratio(ratio, coverage), 1e-12) << "the time of the ranks' links";
    }
  }
  EXPECT_DOUBLE_EQ(tree_share_of(1.5, 0), 0);
  EXPECT_DOUBLE_EQ(split_ratio(1.5, 0), 1.5);
}

TEST(Budget, SaysWhatEachNumberOfAggregatorsBuys) {
  std::vector<std::uint64_t> counts;
  const Budget budget = budget_of(one_second());
  for (const Purchase& p : budget.purchases) counts.push_back(p.aggregators);
  EXPECT_THAT(counts, ElementsAre(1, 2, 4));
  // With one aggregator c = 1/4, and the time is 1.5 / 1.125 = 4/3 s. One more aggregator makes it 1.2 s, and two more
  // make it 1 s.
  EXPECT_NEAR(budget.purchases[0].seconds, 4.0 / 3, 1e-12);
  EXPECT_NEAR(budget.purchases[0].tree_share, 1.0 / 3, 1e-12);
  EXPECT_NEAR(budget.purchases[0].gain, 1.125, 1e-12);
  EXPECT_NEAR(budget.purchases[0].seconds_saved_each, 1.5 - 4.0 / 3, 1e-12);
  EXPECT_NEAR(budget.purchases[1].seconds_saved_each, 4.0 / 3 - 1.2, 1e-12);
  EXPECT_NEAR(budget.purchases[2].seconds_saved_each, 0.1, 1e-12);
  EXPECT_NEAR(budget.purchases[2].gain, 1.5, 1e-12);
}

TEST(Budget, CountsAggregatorsUpToThoseThatSufficeAndTheUsers) {
  BudgetInput input = one_second();
  const auto counts = [&] {
    std::vector<std::uint64_t> all;
    for (const Purchase& p : budget_of(input).purchases) all.push_back(p.aggregators);
    return all;
  };
  input.ranks = 12;
  input.aggregators = 5;
  EXPECT_THAT(counts(), ElementsAre(1, 2, 4, 5, 8, 12));
  input.aggregator_rate = 64'000'000'000;  // four times the rate of the ranks
  EXPECT_THAT(counts(), ElementsAre(1, 2, 3, 5));
  EXPECT_DOUBLE_EQ(budget_of(input).coverage, 1);
  EXPECT_DOUBLE_EQ(budget_of(input).purchases.back().seconds_saved_each, 0);
  input.aggregator_rate = 1'000'000'000;  // 192 aggregators suffice
  EXPECT_THAT(counts(), ElementsAre(1, 2, 4, 5, 8, 12));
  EXPECT_EQ(budget_of(input).aggregators_enough, 192U);
}

TEST(Budget, TakesAsManyAggregatorsAsSufficeIfNoneAreNamed) {
  BudgetInput input = one_second();
  input.aggregators = 0;
  const Budget budget = budget_of(input);
  EXPECT_EQ(budget.aggregators, 4U);
  EXPECT_DOUBLE_EQ(budget.tree.seconds, 1);
  EXPECT_DOUBLE_EQ(budget.split.seconds, 1);
  EXPECT_DOUBLE_EQ(budget.tree_share, 1);
}

TEST(Budget, SaysWhetherAStepIsMetAndWhatWouldMeetIt) {
  BudgetInput input = one_second();
  input.aggregators = 1;
  input.step = 3200ms;
  input.computing = 3s;
  input.overlap = 1.0 / 3;  // one of the three seconds overlaps
  const StepForecast verdict = budget_of(input).verdict.value();
  EXPECT_NEAR(verdict.communication_seconds_max, 1.2, 1e-9);
  EXPECT_NEAR(verdict.ring.seconds, 3.5, 1e-9);
  EXPECT_NEAR(verdict.tree.seconds, 6, 1e-9);
  EXPECT_NEAR(verdict.split.seconds, 3 + 1.0 / 3, 1e-9);
  EXPECT_FALSE(verdict.ring.met || verdict.tree.met || verdict.split.met);
  EXPECT_EQ(verdict.aggregators_needed, 2U);  // 1.2 s, as above
  EXPECT_NEAR(verdict.ring_rate_needed.value(), 20e9, 1);
  EXPECT_NEAR(verdict.tree_rate_needed.value(), 16e9 / 1.2, 1);
  input.aggregators = 2;
  EXPECT_TRUE(budget_of(input).verdict->split.met);
  EXPECT_FALSE(budget_of(input).verdict->tree.met);
}

TEST(Budget, SaysThatNoNumberOfAggregatorsSuffices) {
  BudgetInput input = one_second();
  input.step = 999ms;
  EXPECT_EQ(budget_of(input).verdict->aggregators_needed, std::nullopt);
  EXPECT_NEAR(budget_of(input).verdict->tree_rate_needed.value(), 16e9 / 0.999, 1);
  input.step = 1500ms;
  EXPECT_EQ(budget_of(input).verdict->aggregators_needed, 0U);
  input.step = 1s;
  EXPECT_EQ(budget_of(input).verdict->aggregators_needed, 4U);
  input.computing = 2s;
  input.overlap = 1;
  const StepForecast verdict = budget_of(input).verdict.value();
  EXPECT_FALSE(verdict.split.met) << "computing alone takes longer";
  EXPECT_EQ(verdict.ring_rate_needed, std::nullopt);
  EXPECT_THAT(budget_text(input, budget_of(input)), HasSubstr("leaves no time for communication: computing takes 2 s"));
}

TEST(Budget, GainsNothingForTwoRanks) {
  BudgetInput input = one_second();
  input.ranks = 2;
  input.step = 500ms;
  const Budget budget = budget_of(input);
  EXPECT_DOUBLE_EQ(budget.ring.seconds, 1);
  EXPECT_DOUBLE_EQ(budget.split.seconds, 1);
  EXPECT_EQ(budget.verdict->aggregators_needed, std::nullopt);
}

TEST(BudgetReport, SaysItAllInText) {
  BudgetInput input = one_second();
  input.step = 1200ms;
  EXPECT_EQ(budget_text(input, budget_of(input)),
            "1000000000 parameters, 2 bytes each (bfloat16): 2 GB a step\n"
            "4 ranks on links of 16 Gbit/s\n"
            "2 aggregators on links of 16 Gbit/s: c = 0.5 of what all ranks send; 4 would carry all of it\n"
            "\n"
            "WAY                          EACH LINK CARRIES  TIME   TIMES AS FAST AS THE RING  STEP   MET\n"
            "ring                         3 GB               1.5 s  1.000                      1.5 s  no\n"
            "tree                         2 GB               2 s    0.750                      2 s    no\n"
            "split, 60.0 % through trees  2.4 GB             1.2 s  1.250                      1.2 s  yes\n"
            "\n"
            "AGGREGATORS  C     THROUGH TREES  TIME     TIMES AS FAST AS THE RING  EACH MORE SAVES\n"
            "1            0.25  33.3 %         1.333 s  1.125                      166.7 ms\n"
            "2 *          0.5   60.0 %         1.2 s    1.250                      133.3 ms\n"
            "4            1     100.0 %        1 s      1.500                      100 ms\n"
            "\n"
            "a step of 1.2 s leaves 1.2 s for communication\n"
            "met by split with 2 aggregators on links of 16 Gbit/s\n"
            "met by ranks' links of 20 Gbit/s (ring) or 13.33 Gbit/s (tree with enough aggregators)\n");
}

TEST(BudgetReport, SaysItAllInJson) {
  BudgetInput input = one_second();
  const json plain = json::parse(budget_json(input, budget_of(input)));
  EXPECT_EQ(plain.at("bytes"), 2e9);
  EXPECT_EQ(plain.at("coverage"), 0.5);
  EXPECT_EQ(plain.at("purchases").size(), 3U);
  EXPECT_TRUE(plain.at("verdict").is_null());
  input.step = 1200ms;
  const json verdict = json::parse(budget_json(input, budget_of(input))).at("verdict");
  EXPECT_EQ(verdict.at("split").at("met"), true);
  EXPECT_EQ(verdict.at("ring").at("met"), false);
  EXPECT_EQ(verdict.at("needed").at("aggregators"), 2);
}

TEST(Parameters, AreWrittenAsPeopleWriteThem) {
  for (const char* text : {"70e9", "70G", "70B", "0.07T", "70000M", "70000000000"})
    EXPECT_EQ(parse_parameters(text).value(), 70'000'000'000U) << text;
  EXPECT_EQ(parse_parameters("1").value(), 1U);
  EXPECT_EQ(parse_parameters("1.5k").value(), 1500U);
  EXPECT_EQ(parse_parameters("1e15").value(), kParametersMax);
}

TEST(Parameters, SayWhatIsWrongAndWhatIsAllowed) {
  for (const char* text : {"", "G", "0", "-1", "1.5", "70Q", "70 G", "2e15", "inf", "nan", "1e999", "70GB"}) {
    const auto parameters = parse_parameters(text);
    ASSERT_FALSE(parameters) << text;
    EXPECT_EQ(parameters.error().code, Errc::bad_argument);
    EXPECT_THAT(parameters.error().message, testing::StartsWith("it ")) << text;
  }
}

}  // namespace
}  // namespace tributary::cli
