// Measured times correct the policy, in worlds whose paths are faster or slower than the model says, and change while
// operations run.
#include "client/tuning/adaptation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

namespace tributary::tuning {
namespace {

using namespace std::chrono_literals;
using TimePoint = Adaptation::TimePoint;

constexpr std::uint64_t kBytes = 16 << 20;
constexpr std::uint32_t kRanks = 8;

/// The real times of operations of kBytes, on each path alone, and on the ranks' links.
struct World {
  double trees_us = 1;
  double ranks_us = 1;
  double link_us = 0;  // time to send the whole vector once
  double noise = 0;    // greatest random addition to each time, as a part of that time
  // Time that the processors need if trees carry nothing, and the further time if trees carry all; 0: no
  // time.
  double cores_us = 0;
  double cores_by_trees_us = 0;

  [[nodiscard]] double best_us() const {
    double best = std::min(trees_us, ranks_us);
    for (int part = 0; part <= 64; ++part) best = std::min(best, split_us(part / 64.0));
    return best;
  }
  [[nodiscard]] double split_us(double share) const {
    return std::max(
        {share * trees_us, (1 - share) * ranks_us, on_links_us(share), cores_us + share * cores_by_trees_us});
  }
  [[nodiscard]] double on_links_us(double share) const {
    return (share + (1 - share) * 2 * (kRanks - 1) / kRanks) * link_us;
  }
};

/// A job that calls one operation after the other, and ranks that agree on every amendment.
class Job {
 public:
  Job(const World& of, const PathRates& rates, Collective collective = Collective::all_reduce)
      : world(of),
        collective_(collective),
        figures_(with_trees(default_figures({.ranks = kRanks}, 2), {.rates = rates, .levels = 1})),
        adaptation(figures_, kRanks, default_policy({.ranks = kRanks}, 2, {.rates = rates, .levels = 1})) {}

  /// Runs this many operations, and returns their whole time.
  double run(int operations) {
    double sum = 0;
    for (int i = 0; i < operations; ++i) sum += one();
    return sum;
  }
  double one() {
    const Step step = adaptation.policy().at(collective_, kBytes);
    const double share = static_cast<double>(step.tree_share) / kWholeShare;
    random_ = random_ * 6364136223846793005ULL + 1442695040888963407ULL;
    const double factor = 1 + world.noise * static_cast<double>(random_ >> 40) / (1 << 24);
    MeasuredOperation o{.number = number_++, .collective = collective_, .bytes = kBytes, .path = step.path};
    switch (step.path) {
      case Path::tree:
        o.time_us = world.trees_us * factor;
        break;
      case Path::ranks:
        o.time_us = world.ranks_us * factor;
        break;
      case Path::split:
        o.trees_us = share * world.trees_us * factor;
        o.ranks_us = std::max((1 - share) * world.ranks_us, world.on_links_us(share)) * factor;
        o.time_us = world.split_us(share) * factor;
        if (o.time_us > 1.001 * std::max(o.trees_us, o.ranks_us)) {  // busy processors slow both parts down
          const double slower = o.time_us / std::max(o.trees_us, o.ranks_us);
          o.trees_us *= slower;
          o.ranks_us *= slower;
        }
        break;
    }
    now += std::chrono::microseconds(static_cast<std::int64_t>(o.time_us));
    if (adaptation.add(o, now)) {
      ++amendments;
      now += 100us;
      adaptation.took_effect(number_, now);
    }
    return o.time_us;
  }
  /// The manager tells these rates.
  void tell(const PathRates& rates) {
    adaptation.begin_again(with_trees(figures_, {.rates = rates, .levels = 1}),
                           default_policy({.ranks = kRanks}, 2, {.rates = rates, .levels = 1}));
  }
  [[nodiscard]] Path path() const { return adaptation.policy().at(collective_, kBytes).path; }
  [[nodiscard]] double share() const {
    return static_cast<double>(adaptation.policy().at(collective_, kBytes).tree_share) / kWholeShare;
  }

  World world;
  int amendments = 0;
  TimePoint now{1h};

 private:
  const Collective collective_;
  const Figures figures_;
  std::uint64_t number_ = 0;
  std::uint64_t random_ = 1;

 public:
  Adaptation adaptation;
};

constexpr PathRates kWide{.links = 1'000'000'000, .trees = 1'000'000'000, .ranks = 1'000'000'000};

TEST(Adaptation, LeavesAChoiceThatIsRight) {
  Job job({.trees_us = 136'000, .ranks_us = 237'000, .link_us = 134'000}, kWide);
  ASSERT_EQ(job.path(), Path::tree);
  EXPECT_LT(job.run(100), 100 * 136'000 * 1.1) << "trials cost little";
  EXPECT_EQ(job.path(), Path::tree);
  EXPECT_LE(job.amendments, 2);
}

TEST(Adaptation, FindsThatTheRanksAloneAreQuicker) {
  // The links have the topology's rates, but the processors are fully busy.
  Job job({.trees_us = 400'000, .ranks_us = 240'000, .link_us = 134'000}, kWide);
  ASSERT_EQ(job.path(), Path::tree);
  job.run(60);
  EXPECT_LT(job.run(20), 20 * 240'000 * 1.01);
}

constexpr PathRates kQuarter{.links = 1'000'000'000, .trees = 250'000'000, .ranks = 1'000'000'000};

/// Runs a job whose model knows the links, with a pause after each operation, until its first trial of the ranks alone.
/// Returns the time that the trial costs, divided by the time of all operations so far.
double price_of_first_trial_of_ranks(Job& job, std::chrono::seconds pause) {
  double all_us = 0, longer_us = 0;
  while (longer_us == 0) {
    const double best_us = job.world.best_us();
    all_us += job.one();
    job.now += pause;
    if (job.path() == Path::ranks) longer_us = Adaptation::kSamples * (job.world.ranks_us - best_us);
    if (all_us > 10 * 60e6) return 0;
  }
  return longer_us / all_us;
}

// The first operations of a job are few, and each may take a second. A job that computes between its operations makes
// few of them in a minute.
TEST(Adaptation, ASplitThatTakesWhatTheModelExpectsLosesAHundredthToItsFirstTrialOfTheRanks) {
  for (const auto pause : {0s, 10s}) {
    Job job({.trees_us = 540'000, .ranks_us = 237'000, .link_us = 134'000}, kQuarter);
    ASSERT_EQ(job.path(), Path::split);
    const double price = price_of_first_trial_of_ranks(job, pause);
    EXPECT_LT(price, 0.012) << "pauses of " << pause.count() << " s";
    EXPECT_GT(price, 0) << "a later round looks whether the ranks are still slower";
    job.run(20);
    EXPECT_EQ(job.path(), Path::split);
  }
}

TEST(Adaptation, ASplitWhoseTreesBecomeSlowHasItsDeferredTrialOfTheRanksSoon) {
  Job job({.trees_us = 540'000, .ranks_us = 237'000, .link_us = 134'000}, kQuarter);
  job.run(40);
  ASSERT_EQ(job.path(), Path::split);
  job.world.trees_us = 8e6;
  job.run(10);
  EXPECT_EQ(job.path(), Path::ranks);
}

TEST(Adaptation, ASplitThatTakesLongerThanTheModelExpectsHasATrialOfTheRanksAtOnce) {
  Job job({.trees_us = 540'000, .ranks_us = 205'000, .link_us = 117'000, .cores_us = 223'000}, kQuarter);
  ASSERT_EQ(job.path(), Path::split);
  job.run(20);
  EXPECT_EQ(job.path(), Path::ranks);
}

TEST(Adaptation, BeginsAgainWithTheChoiceForOtherRates) {
  Job job({.trees_us = 136'000, .ranks_us = 237'000, .link_us = 134'000}, kWide);
  job.run(50);
  ASSERT_EQ(job.path(), Path::tree);
  const int before = job.amendments;
  job.world.trees_us = 540'000;  // other groups have come to the aggregators
  job.tell(kQuarter);
  EXPECT_EQ(job.path(), Path::tree) << "until the ranks have agreed";
  job.one();
  EXPECT_EQ(job.amendments, before + 1);
  EXPECT_EQ(job.path(), Path::split);
  EXPECT_LT(job.one(), 1.05 * job.world.best_us()) << "with the second operation";
  job.world.trees_us = 136'000;  // they have gone
  job.tell(kWide);
  job.one();
  EXPECT_EQ(job.path(), Path::tree);
  EXPECT_LT(job.run(100), 100 * 136'000 * 1.1);
}

TEST(Adaptation, AsksForNothingWhereOtherRatesLeaveTheChoice) {
  Job job({.trees_us = 136'000, .ranks_us = 237'000, .link_us = 134'000}, kWide);
  job.run(100);
  const int before = job.amendments;
  for (int i = 0; i < 20; ++i) {
    job.tell({.links = 900'000'000, .trees = 900'000'000, .ranks = 900'000'000});
    job.one();
  }
  EXPECT_EQ(job.amendments, before);
}

TEST(Adaptation, LeavesTheTreesWhereTheyOnlyTakeProcessorTime) {
  // The processors are fully busy with the ranks' path alone, and trees need more work, so no share saves time.
  Job job(
      {.trees_us = 540'000, .ranks_us = 240'000, .link_us = 134'000, .cores_us = 239'000, .cores_by_trees_us = 200'000},
      kQuarter);
  ASSERT_EQ(job.path(), Path::split);
  EXPECT_LT(job.run(200), 200 * 240'000 * 1.03) << "the trials included";
  EXPECT_EQ(job.path(), Path::ranks);
}

TEST(Adaptation, TakesASmallerShareWhereProcessorsAreTheBound) {
  Job job(
      {.trees_us = 540'000, .ranks_us = 237'000, .link_us = 134'000, .cores_us = 170'000, .cores_by_trees_us = 280'000},
      kQuarter);
  ASSERT_EQ(job.path(), Path::split);
  const double planned = job.share();
  ASSERT_GT(job.world.split_us(planned), 1.1 * job.world.ranks_us) << "slower than without";
  job.run(40);
  EXPECT_EQ(job.path(), Path::split);
  EXPECT_LT(job.share(), 0.6 * planned);
  EXPECT_LT(job.run(300), 300 * job.world.best_us() * 1.03);
  EXPECT_LT(job.world.split_us(job.share()), 0.97 * job.world.ranks_us);
}

TEST(Adaptation, TrialsOfOtherPathsCostLessThanAHundredthOfTheTime) {
  Job job({.trees_us = 136'000, .ranks_us = 160'000, .link_us = 134'000}, kWide);
  job.run(30);
  const int operations = 30'000;  // more than an hour
  EXPECT_LT(job.run(operations), operations * 136'000.0 * 1.01);
  EXPECT_LT(job.amendments, 40);
}

TEST(Adaptation, MakesNoTrialsForOperationsThatTakeLittleTime) {
  Adaptation adaptation(with_trees(default_figures({.ranks = kRanks}, 2), {.rates = kWide, .levels = 1}), kRanks,
                        default_policy({.ranks = kRanks}, 2, {.rates = kWide, .levels = 1}));
  TimePoint now{1h};
  for (std::uint64_t number = 0; number < 2000; number += 2) {
    now += 136ms;
    EXPECT_FALSE(adaptation.add({.number = number, .bytes = kBytes, .path = Path::tree, .time_us = 136'000}, now));
    now += 1ms;
    EXPECT_FALSE(adaptation.add({.number = number + 1, .bytes = 4, .path = Path::ranks, .time_us = 1'000}, now));
  }
}

TEST(Adaptation, SplitsWhereAnAggregatorIsNarrowerThanPlanned) {
  Job job({.trees_us = 540'000, .ranks_us = 237'000, .link_us = 134'000}, kWide);
  job.run(60);
  EXPECT_LT(job.run(100), 100 * job.world.best_us() * 1.05);
  EXPECT_EQ(job.path(), Path::split);
}

TEST(Adaptation, FollowsAnAggregatorThatBecomesSlowAndRecovers) {
  Job job({.trees_us = 136'000, .ranks_us = 237'000, .link_us = 134'000}, kWide);
  job.run(50);
  job.world.trees_us = 544'000;
  const TimePoint before = job.now;
  while (job.one() > 1.1 * job.world.best_us()) ASSERT_LT(job.now - before, 8s);
  job.run(40);
  EXPECT_LT(job.run(100), 100 * job.world.best_us() * 1.05);
  job.world.trees_us = 136'000;
  job.now += 20s;  // the class rests until then
  job.run(60);
  EXPECT_LT(job.run(100), 100 * job.world.best_us() * 1.1);
}

TEST(Adaptation, NoticesAtOnceThatTheTreesOfASplitBecomeSlow) {
  const PathRates narrow{.links = 1'000'000'000, .trees = 500'000'000, .ranks = 1'000'000'000};
  Job job({.trees_us = 270'000, .ranks_us = 237'000, .link_us = 134'000}, narrow);
  job.run(100);
  ASSERT_EQ(job.path(), Path::split);
  job.world.trees_us *= 4;
  ASSERT_GT(job.one(), 2 * job.world.best_us());
  EXPECT_LT(job.one(), 1.6 * job.world.best_us()) << "one slow operation decides, because its ranks were not slow";
  job.run(12);
  EXPECT_LT(job.one(), 1.12 * job.world.best_us());
  double worst = 0;
  for (int i = 0; i < 200; ++i) worst = std::max(worst, job.one());
  EXPECT_LT(worst, 1.3 * job.world.best_us())
      << "the parts show how slow the trees are alone, so this path is not tried";
  ASSERT_EQ(job.path(), Path::split);
  job.world.trees_us /= 4;
  job.run(40);
  EXPECT_LT(job.one(), 1.12 * job.world.best_us()) << "the class notices at once that the trees are quick again";
}

TEST(Adaptation, MovesTheShareOfASplitUntilBothPartsEndTogether) {
  // The topology says that the aggregators carry half as much as the links; in fact they carry less.
  const PathRates narrow{.links = 1'000'000'000, .trees = 500'000'000, .ranks = 1'000'000'000};
  for (const double trees_us : {270'000.0, 350'000.0, 600'000.0, 1'200'000.0}) {
    Job job({.trees_us = trees_us, .ranks_us = 237'000, .link_us = 134'000}, narrow);
    ASSERT_EQ(job.path(), Path::split);
    job.run(80);
    EXPECT_LT(job.run(100), 100 * job.world.best_us() * 1.1) << trees_us;
  }
}

TEST(Adaptation, IsNotMisledByNoise) {
  for (const double noise : {0.1, 0.3}) {
    Job job({.trees_us = 136'000, .ranks_us = 237'000, .link_us = 134'000, .noise = noise}, kWide);
    const double sum = job.run(400);
    Job without({.trees_us = 136'000, .ranks_us = 237'000, .link_us = 134'000, .noise = noise}, kWide);
    EXPECT_LT(sum, 400 * 136'000 * (1 + noise / 2) * 1.06) << noise;
    EXPECT_LE(job.amendments, 30);
  }
}

TEST(Adaptation, KnowsNoRatesAndFindsTheQuickestPathAllTheSame) {
  // Without a topology the model assumes 1 Gbit/s for every link, and these links are a hundred times as wide.
  Job quick_trees({.trees_us = 1'400, .ranks_us = 2'400, .link_us = 1'340}, {});
  quick_trees.run(100);
  EXPECT_LT(quick_trees.run(20), 20 * 1'400 * 1.01);
  Job quick_ranks({.trees_us = 9'000, .ranks_us = 2'400, .link_us = 1'340}, {});
  quick_ranks.run(100);
  EXPECT_LT(quick_ranks.run(20), 20 * 2'400 * 1.01);
}

TEST(Adaptation, DoesNotSplitWhatCannotBeSplit) {
  Job job({.trees_us = 540'000, .ranks_us = 237'000, .link_us = 134'000}, kWide, Collective::reduce_scatter);
  for (int i = 0; i < 100; ++i) {
    job.one();
    ASSERT_NE(job.path(), Path::split);
  }
}

MeasuredOperation measured(std::uint64_t number, double time_us, Path path = Path::tree, std::uint64_t bytes = kBytes) {
  return {.number = number, .bytes = bytes, .path = path, .time_us = time_us};
}

class OneByOne : public testing::Test {
 protected:
  /// Adds operations of this time, at most `limit`, until an amendment follows.
  std::optional<Amendment> add(int limit, double time_us, Path path = Path::tree) {
    for (int i = 0; i < limit; ++i) {
      now_ += 1s;
      if (auto amendment = adaptation_.add(measured(number_++, time_us, path), now_)) return amendment;
    }
    return std::nullopt;
  }
  TimePoint now_{1h};
  std::uint64_t number_ = 0;
  Adaptation adaptation_{with_trees(default_figures({.ranks = kRanks}, 2), {.rates = kWide, .levels = 1}), kRanks,
                         default_policy({.ranks = kRanks}, 2, {.rates = kWide, .levels = 1})};
};

TEST_F(OneByOne, OneAmendmentAtATimeAndNoneForOperationsBeforeIt) {
  const auto first = add(4, 400'000);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->step.path, Path::ranks);
  EXPECT_EQ(first->above, kBytes / 2);
  EXPECT_EQ(first->step.bytes_max, kBytes);
  EXPECT_FALSE(add(20, 400'000)) << "the ranks have not agreed yet";
  const std::uint64_t from = number_ + 10;
  adaptation_.took_effect(from, now_);
  now_ += 1h;  // the agreement took long, so the next amendment must wait
  EXPECT_EQ(adaptation_.policy().at(Collective::all_reduce, kBytes).path, Path::ranks);
  EXPECT_FALSE(add(10, 900'000, Path::ranks)) << "these operations began before the amendment, so they do not count";
  EXPECT_FALSE(adaptation_.take_news());
  EXPECT_FALSE(add(3, 350'000, Path::ranks)) << "one is passed over, and two do not decide";
  EXPECT_FALSE(adaptation_.take_news());
  std::ignore = add(1, 350'000, Path::ranks);
  EXPECT_TRUE(adaptation_.take_news()) << "the third does, because they are alike";
}

TEST_F(OneByOne, JudgesASplitByItsTimesIfRoundingGivesAllSegmentsToOnePath) {
  for (const Path rounded : {Path::tree, Path::ranks}) {
    const TreeShape quarter{.rates = kQuarter, .levels = 1};
    Adaptation adaptation(with_trees(default_figures({.ranks = kRanks}, 2), quarter), kRanks,
                          default_policy({.ranks = kRanks}, 2, quarter));
    ASSERT_EQ(adaptation.policy().at(Collective::all_reduce, kBytes).path, Path::split);
    std::optional<Amendment> asked;
    for (std::uint64_t number = 0; number < 10 && !asked; ++number)
      asked = adaptation.add(measured(number, 500'000, rounded), now_ += 1s);
    EXPECT_TRUE(asked) << "another path is quicker than these operations, whatever path they took";
  }
}

TEST_F(OneByOne, AnAmendmentThatWasNotAgreedChangesNothing) {
  ASSERT_TRUE(add(4, 400'000));
  adaptation_.took_effect(Adaptation::kNever, now_);
  EXPECT_EQ(adaptation_.policy().at(Collective::all_reduce, kBytes).path, Path::tree);
  EXPECT_FALSE(adaptation_.take_news());
}

TEST_F(OneByOne, OtherRatesWaitUntilTheRanksHaveAgreedOnTheLastAmendment) {
  ASSERT_TRUE(add(4, 400'000));
  const TreeShape quarter{.rates = kQuarter, .levels = 1};
  adaptation_.begin_again(with_trees(default_figures({.ranks = kRanks}, 2), quarter),
                          default_policy({.ranks = kRanks}, 2, quarter));
  EXPECT_FALSE(add(20, 400'000)) << "one amendment at a time";
  adaptation_.took_effect(number_, now_);
  now_ += 1h;  // the agreement took long, and the next one must wait
  EXPECT_EQ(adaptation_.policy().at(Collective::all_reduce, kBytes).path, Path::ranks);
  const auto next = add(1, 400'000, Path::ranks);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->step.path, Path::split);
  adaptation_.took_effect(Adaptation::kNever, now_);
  EXPECT_EQ(adaptation_.policy().at(Collective::all_reduce, kBytes).path, Path::ranks);
  EXPECT_FALSE(add(1, 240'000, Path::ranks)) << "the class goes on with what the ranks use";
}

TEST_F(OneByOne, AmendmentsFollowEachOtherAfterTenTimesAsLongAsTheyTake) {
  ASSERT_TRUE(add(4, 400'000));
  now_ += 30s;  // the ranks agree after half a minute: some are slow
  adaptation_.took_effect(number_, now_);
  EXPECT_FALSE(add(290, 900'000, Path::ranks)) << "though the trial was lost after two operations";
  EXPECT_TRUE(add(20, 900'000, Path::ranks));
}

TEST_F(OneByOne, IgnoresOperationsThatNoPolicyDecides) {
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(adaptation_.add({.number = number_++, .collective = Collective::barrier, .time_us = 9e9}, now_));
    EXPECT_FALSE(adaptation_.add({.number = number_++, .bytes = 0, .time_us = 9e9}, now_));
    EXPECT_FALSE(adaptation_.add(
        {.number = number_++, .collective = Collective::gather, .bytes = kBytes, .path = Path::ranks, .time_us = 9e9},
        now_));
  }
}

// ---- amendments

TEST(Amendment, HoldsOnlyForItsSizes) {
  const Policy policy = default_policy({.ranks = kRanks}, 2, {.rates = kWide, .levels = 1});
  const Step step{.bytes_max = 4096, .path = Path::split, .algorithm = Algorithm::ring, .tree_share = 777};
  for (const std::uint64_t above : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2048}, std::uint64_t{4095}}) {
    for (const std::uint64_t upto : {std::uint64_t{4096}, kBytes, UINT64_MAX}) {
      Amendment amendment{Collective::all_reduce, above, step};
      amendment.step.bytes_max = upto;
      const Policy changed = amended(policy, amendment);
      for (const std::uint64_t bytes :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{2048}, std::uint64_t{2049},
            std::uint64_t{4095}, std::uint64_t{4096}, std::uint64_t{4097}, kBytes, kBytes + 1, UINT64_MAX}) {
        const bool inside = bytes > above && bytes <= upto;
        const Step& got = changed.at(Collective::all_reduce, bytes);
        const Step& old = policy.at(Collective::all_reduce, bytes);
        EXPECT_EQ(got.path, inside ? Path::split : old.path) << above << " " << upto << " " << bytes;
        EXPECT_EQ(got.tree_share, inside ? 777U : old.tree_share);
        EXPECT_EQ(got.algorithm, inside ? Algorithm::ring : old.algorithm);
      }
      EXPECT_EQ(changed.steps(Collective::all_reduce).back().bytes_max, UINT64_MAX);
      EXPECT_EQ(changed.steps(Collective::broadcast), policy.steps(Collective::broadcast));
      EXPECT_EQ(decode_policy(encode(changed)), changed) << "the changed policy can be sent and read";
    }
  }
}

TEST(Amendment, IsTheSameAfterWritingAndReading) {
  const Amendment amendment{Collective::reduce, 1000, {2000, Path::split, Algorithm::binomial, 99}};
  EXPECT_EQ(decode_amendment(encode(amendment)), amendment);
}

TEST(Amendment, RefusesWhatIsMalformed) {
  for (const char* text : {"", "[]", "{}", R"({"collective":"all_reduce","above":5})",
                           R"({"collective":"x","above":1,"step":[9,"tree","ring"]})",
                           R"({"collective":7,"above":1,"step":[9,"tree","ring"]})",
                           R"({"collective":"all_reduce","above":-1,"step":[9,"tree","ring"]})",
                           R"({"collective":"all_reduce","above":9,"step":[9,"tree","ring"]})",
                           R"({"collective":"all_reduce","above":1,"step":[9,"tree","bruck"]})",
                           R"({"collective":"all_reduce","above":1,"step":[9,"split","ring"]})",
                           R"({"collective":"all_reduce","above":1,"step":[9,"split","ring",0]})",
                           R"({"collective":"all_reduce","above":1,"step":[9,"split","ring",65536]})",
                           R"({"collective":"all_reduce","above":1,"step":[9,"tree","ring",7]})",
                           R"({"collective":"all_reduce","above":1,"step":["9","tree","ring"]})"}) {
    const auto decoded = decode_amendment(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code, Errc::corrupt);
  }
}

}  // namespace
}  // namespace tributary::tuning
