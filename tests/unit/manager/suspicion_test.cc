// A group reports that an aggregator is dead: the consequences for this group, for other groups, and for an aggregator
// that lives.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SuspicionTest : public ClusterFixture {
 protected:
  void open_one() {
    open("");
    ASSERT_TRUE(enlist("only", "h").has_value());
  }
  [[nodiscard]] bool suspected(const std::string& name) const {
    return cluster_->aggregator(name)->suspected.has_value();
  }
  void renew(const std::string& name, std::optional<bool> drains = std::nullopt) {
    ASSERT_TRUE(cluster_->renew_aggregator(name, std::nullopt, {}, {}, drains).has_value());
  }
};

TEST_F(SuspicionTest, AnAggregatorThatWasReportedDeadIsSuspectedAndGetsNoNewTrees) {
  open();
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  ASSERT_TRUE(uses(id, "leaf-a"));
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"leaf-a"}).has_value());
  const auto view = cluster_->aggregator("leaf-a");
  ASSERT_TRUE(view->suspected.has_value());
  EXPECT_EQ(view->suspected->group, id);
  EXPECT_EQ(view->suspected->since, clock_.unix_seconds());
  EXPECT_EQ(cluster_->stats().aggregators_suspected, 1U);
  EXPECT_EQ(cluster_->stats().aggregators_active, 2U);
  EXPECT_FALSE(uses(ask()->descriptor.group, "leaf-a"));
  EXPECT_FALSE(suspected("leaf-b"));
}

TEST_F(SuspicionTest, AGroupThatIsGivenBackReportsOnlyAggregatorsOfItsTrees) {
  open();
  enlist_all();
  const std::uint64_t id = ask(1, 2)->descriptor.group;
  ASSERT_TRUE(uses(id, "leaf-a"));
  ASSERT_FALSE(uses(id, "leaf-b"));
  EXPECT_EQ(cluster_->remove_group(id, {"no name"}).error().code, Errc::bad_argument);
  EXPECT_FALSE(suspected("leaf-a"));
  ASSERT_TRUE(cluster_->remove_group(id, {"leaf-a", "leaf-b", "nobody"}).has_value());
  EXPECT_TRUE(suspected("leaf-a"));
  EXPECT_FALSE(suspected("leaf-b")) << "the group's trees did not have it";
  renew("leaf-a");
  ASSERT_TRUE(cluster_->remove_group(id, {"leaf-a"}).has_value()) << "the first answer may have been lost";
  EXPECT_FALSE(suspected("leaf-a")) << "the group has ended";
}

TEST_F(SuspicionTest, ItsNextRenewalClearsItForAllGroupsExceptTheOneThatReportedIt) {
  open_one();
  const std::uint64_t accuser = ask()->descriptor.group;
  ASSERT_TRUE(cluster_->rebuild_group(accuser, 1, {"only"})->descriptor.empty());
  const auto meanwhile = ask();
  EXPECT_TRUE(meanwhile->descriptor.empty());
  EXPECT_THAT(meanwhile->descriptor.reason, HasSubstr("has not renewed since"));
  const std::uint64_t other = meanwhile->descriptor.group;
  EXPECT_FALSE(cluster_->renew_group(other)->rebuild_advised);
  renew("only");
  EXPECT_FALSE(suspected("only"));
  EXPECT_TRUE(cluster_->renew_group(other)->rebuild_advised);
  EXPECT_EQ(cluster_->rebuild_group(other, 0, {})->descriptor.epoch, 1U);
  EXPECT_TRUE(cluster_->rebuild_group(accuser, 1, {})->descriptor.empty());
}

TEST_F(SuspicionTest, ANewRegistrationClearsItAndTheReportWasNotFalse) {
  open_one();
  ASSERT_TRUE(cluster_->rebuild_group(ask()->descriptor.group, 1, {"only"}).has_value());
  ASSERT_TRUE(enlist("only", "h").has_value());
  EXPECT_FALSE(suspected("only"));
  const auto next = ask();
  ASSERT_EQ(next->descriptor.epoch, 1U);
  ASSERT_TRUE(cluster_->rebuild_group(next->descriptor.group, 1, {"only"}).has_value());
  EXPECT_TRUE(suspected("only")) << "the aggregator may die again at once";
}

TEST_F(SuspicionTest, AGroupCannotReportAnAggregatorOutsideOfItsTrees) {
  open();
  enlist_all();
  const std::uint64_t id = ask(1, 2)->descriptor.group;
  ASSERT_TRUE(uses(id, "leaf-a"));
  ASSERT_FALSE(uses(id, "leaf-b"));
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"leaf-b", "spine", "nobody"}).has_value());
  for (const char* name : {"leaf-b", "spine"}) EXPECT_FALSE(suspected(name)) << name;
}

TEST_F(SuspicionTest, AGroupCannotReportAnAggregatorThatHasRegisteredAgain) {
  open_one();
  const std::uint64_t id = ask()->descriptor.group;
  ASSERT_TRUE(enlist("only", "h").has_value());
  ASSERT_TRUE(cluster_->rebuild_group(id, 1, {"only"}).has_value());
  EXPECT_FALSE(suspected("only"));
  EXPECT_TRUE(uses(id, "only")) << "another aggregator failed";
}

TEST_F(SuspicionTest, ALivingAggregatorThatIsBlamedOftenIsRarelyTakenFromOthers) {
  open_one();
  settings_.failed_exclusion = 0s;
  open_one();
  int blinded = 0;
  const int seconds = 600;
  for (int second = 0; second < seconds; ++second) {
    advance(1s);
    renew("only");
    // Act as a client with the job token that makes a group and blames its aggregator.
    const auto liar = ask();
    if (!liar->descriptor.empty()) {
      ASSERT_TRUE(cluster_->rebuild_group(liar->descriptor.group, 1, {"only"}).has_value());
    }
    const auto other = ask();
    blinded += other->descriptor.empty() ? 1 : 0;
    for (const auto& it : {liar, other}) ASSERT_TRUE(cluster_->remove_group(it->descriptor.group).has_value());
  }
  EXPECT_GT(blinded, 0);
  EXPECT_LE(blinded, 6) << "reports count only after 30, 60, 120, 240 and 480 seconds";
}

TEST_F(SuspicionTest, ARepeatedRequestThatNamesAnAggregatorOfTheNewTreesGetsOthers) {
  open();
  enlist_all();
  const std::uint64_t id = ask()->descriptor.group;
  // The group never gets this answer, so it is at epoch 1 when it sees the leaf fail.
  ASSERT_EQ(cluster_->rebuild_group(id, 1, {}, true)->descriptor.epoch, 2U);
  ASSERT_TRUE(uses(id, "leaf-a"));
  const auto again = cluster_->rebuild_group(id, 1, {"leaf-a"});
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->descriptor.epoch, 3U);
  EXPECT_FALSE(uses(id, "leaf-a"));
  EXPECT_TRUE(suspected("leaf-a"));
}

TEST_F(SuspicionTest, ARepeatedRequestDoesNotBlameAnAggregatorThatHasRegisteredAgain) {
  open_one();
  const std::uint64_t id = ask()->descriptor.group;
  ASSERT_TRUE(enlist("only", "h").has_value());
  ASSERT_EQ(cluster_->rebuild_group(id, 1, {"only"})->descriptor.epoch, 2U);
  EXPECT_EQ(cluster_->rebuild_group(id, 1, {"only"})->descriptor.epoch, 2U);
  EXPECT_TRUE(uses(id, "only"));
  EXPECT_FALSE(suspected("only"));
}

TEST_F(SuspicionTest, AnAggregatorWhoseDrainHasEndedGetsTreesOnceItKnowsOfTheEnd) {
  open_one();
  ASSERT_TRUE(cluster_->set_draining("only", true).has_value());
  renew("only", false);
  renew("only", true);
  ASSERT_TRUE(cluster_->set_draining("only", false).has_value());
  const auto early = ask();
  EXPECT_TRUE(early->descriptor.empty());
  EXPECT_THAT(early->descriptor.reason, HasSubstr("not told yet that its drain has ended"));
  EXPECT_EQ(cluster_->stats().aggregators_resuming, 1U);
  EXPECT_FALSE(cluster_->renew_group(early->descriptor.group)->rebuild_advised);
  open("");  // the manager restarts
  EXPECT_TRUE(ask()->descriptor.empty());
  EXPECT_FALSE(*cluster_->renew_aggregator("only", std::nullopt, {}, {}, true))
      << "this answer tells the aggregator of the end of its drain";
  EXPECT_TRUE(ask()->descriptor.empty()) << "that answer may be lost";
  renew("only", false);
  EXPECT_FALSE(ask()->descriptor.empty());
  EXPECT_TRUE(cluster_->renew_group(early->descriptor.group)->rebuild_advised);
}

TEST_F(SuspicionTest, AnAggregatorThatNeverHeardOfItsDrainGetsTreesAtTheEndOfTheDrain) {
  open_one();
  ASSERT_TRUE(cluster_->set_draining("only", true).has_value());
  EXPECT_TRUE(ask()->descriptor.empty());
  ASSERT_TRUE(cluster_->set_draining("only", false).has_value());
  EXPECT_EQ(cluster_->stats().aggregators_resuming, 0U) << "it refuses no lanes";
  EXPECT_FALSE(ask()->descriptor.empty());
}

TEST_F(SuspicionTest, AnAggregatorIsResumingAlsoIfASecondDrainEndsBeforeItKnowsOfTheFirstDrainsEnd) {
  open_one();
  ASSERT_TRUE(cluster_->set_draining("only", true).has_value());
  renew("only", false);
  for (const bool draining : {false, true, false}) ASSERT_TRUE(cluster_->set_draining("only", draining).has_value());
  EXPECT_EQ(cluster_->stats().aggregators_resuming, 1U) << "it refuses lanes since the first drain";
  EXPECT_TRUE(ask()->descriptor.empty());
}

TEST_F(SuspicionTest, AnAggregatorThatDrainsWhenItRegistersGetsNoTreesUntilItKnowsOfTheEnd) {
  open("");
  ASSERT_TRUE(cluster_
                  ->register_aggregator({.name = "only",
                                         .host = "h",
                                         .data = {"10.0.0.1", 7000},
                                         .http = {"10.0.0.1", 7472},
                                         .memory_bytes = kMemory,
                                         .draining = true})
                  .has_value());
  EXPECT_TRUE(ask()->descriptor.empty());
  renew("only", false);
  EXPECT_FALSE(ask()->descriptor.empty());
}

}  // namespace
}  // namespace tributary::manager
