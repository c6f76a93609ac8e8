// Groups that the manager has lost, and that prove their existence by the manager's own record.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AdoptionTest : public ClusterFixture {
 protected:
  void SetUp() override {
    open();
    enlist_all();
    granted_ = *ask(2);
    id_ = granted_.descriptor.group;
  }
  /// Lets the manager lose its store, but not its key.
  void forget_all() {
    cluster_.reset();
    store_ = {};
    open();
  }
  Result<GroupLeaseView> adopt() { return cluster_->adopt_group(id_, granted_.record, nodes(4)); }
  void expect_refused(const Result<GroupLeaseView>& answer, Errc code, const std::string& why) {
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, code) << answer.error().message;
    EXPECT_THAT(answer.error().message, HasSubstr(why));
  }
  Result<Registered> come_back(const std::string& name, const std::string& host, std::uint64_t incarnation) {
    return cluster_->register_aggregator({.name = name,
                                          .host = host,
                                          .data = {"10.0.0.1", static_cast<std::uint16_t>(7000 + ports_++)},
                                          .http = {"10.0.0.1", 7472},
                                          .memory_bytes = kMemory,
                                          .incarnation = incarnation});
  }

  GroupGrant granted_;
  std::uint64_t id_ = 0;
};

TEST_F(AdoptionTest, AGroupThatTheManagerHasLostIsAdoptedUnchanged) {
  const GroupRecord before = *cluster_->group(id_)->record;
  forget_all();
  ASSERT_EQ(cluster_->renew_group(id_).error().code, Errc::peer_gone);
  const auto lease = adopt();
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_EQ(lease->epoch, 1U);
  EXPECT_EQ(lease->lease_seconds, 15U);
  GroupRecord after = *cluster_->group(id_)->record;
  EXPECT_EQ(after.adopted_at, clock_.unix_seconds());
  after.adopted_at = 0;
  EXPECT_EQ(after, before);
  EXPECT_THAT(store_.groups, SizeIs(1)) << "the store keeps the group as it keeps others";
  EXPECT_EQ(cluster_->stats().groups_adopted, 1U);
  ASSERT_TRUE(adopt().has_value()) << "a second adoption is a renewal";
  EXPECT_EQ(cluster_->stats().groups_adopted, 1U);
  advance(14s);
  EXPECT_TRUE(cluster_->renew_group(id_).has_value());
  advance(16s);
  EXPECT_FALSE(cluster_->group(id_).has_value()) << "the group's lease ends like any other";
}

TEST_F(AdoptionTest, UnequalLanesAreAdoptedUnchanged) {
  cluster_.reset();
  store_ = {};
  open("fabric: flat\nassumed_rate: 1Gbit/s\n");
  for (const auto& [name, rate] : {std::pair{"narrow", 250'000'000U}, {"wide", 1'000'000'000U}}) {
    ASSERT_TRUE(cluster_
                    ->register_aggregator({.name = name,
                                           .host = name,
                                           .data = {"10.0.0.1", 7000},
                                           .http = {"10.0.0.1", 7472},
                                           .memory_bytes = kMemory,
                                           .children_max = kChildrenMax,
                                           .line_rate_bits_per_second = rate})
                    .has_value());
  }
  const auto verifier = *TokenVerifier::create(key_.public_key());
  granted_ = *cluster_->create_group({.job = "job", .hosts = nodes(8), .lane_weights = true});
  const GroupDescriptor& told = granted_.descriptor;
  id_ = told.group;
  ASSERT_THAT(told.lanes, SizeIs(2)) << told.reason;
  EXPECT_EQ(told.lanes[0].weight, 4U);
  EXPECT_EQ(told.lanes[1].weight, 1U);
  EXPECT_GT(told.lanes[0].window, told.lanes[1].window);
  for (const LaneDescriptor& lane : told.lanes) {
    const auto claims = verifier.verify(lane.entries[3].tokens[0], clock_.unix_seconds());
    ASSERT_TRUE(claims.has_value()) << claims.error().message;
    EXPECT_EQ(claims->window, lane.window) << "the aggregator reserves what the lane uses";
  }
  const std::uint64_t held = reserved();
  const GroupRecord before = *cluster_->group(id_)->record;
  cluster_.reset();
  store_ = {};
  open("fabric: flat\nassumed_rate: 1Gbit/s\n");
  ASSERT_TRUE(cluster_->adopt_group(id_, granted_.record, nodes(8)).has_value());
  GroupRecord after = *cluster_->group(id_)->record;
  after.adopted_at = 0;
  EXPECT_EQ(after, before);
  EXPECT_GT(held, 0U);
}

TEST_F(AdoptionTest, AnAdoptedGroupCountsFollowsDrainsAndIsRebuilt) {
  const std::uint64_t held = reserved();
  std::map<std::string, std::uint64_t> incarnations;
  for (const auto& it : cluster_->aggregators()) incarnations[it.record.name] = it.record.incarnation;
  forget_all();
  ASSERT_TRUE(adopt().has_value());
  ASSERT_TRUE(come_back("leaf-a", "agg-leaf-0", incarnations["leaf-a"]).has_value());
  ASSERT_TRUE(come_back("leaf-b", "agg-leaf-1", incarnations["leaf-b"]).has_value());
  ASSERT_TRUE(come_back("spine", "agg-spine-0", incarnations["spine"]).has_value());
  EXPECT_EQ(reserved(), held);
  ASSERT_TRUE(cluster_->set_draining("leaf-a", true).has_value());
  EXPECT_EQ(cluster_->renew_group(id_)->reason, "aggregator leaf-a is draining");
  const auto moved = cluster_->rebuild_group(id_, 1, {}, true);
  ASSERT_TRUE(moved.has_value()) << moved.error().message;
  EXPECT_EQ(moved->descriptor.epoch, 2U);
  EXPECT_FALSE(uses(id_, "leaf-a"));
}

TEST_F(AdoptionTest, AGroupWhoseLeaseEndedComesBack) {
  advance(16s);
  ASSERT_FALSE(cluster_->group(id_).has_value());
  ASSERT_TRUE(adopt().has_value());
  EXPECT_TRUE(cluster_->group(id_).has_value());
}

TEST_F(AdoptionTest, AGroupOnTheFallbackIsAdoptedToo) {
  const auto waiting = cluster_->create_group(
      {.job = "job", .hosts = {"nowhere-1", "nowhere-2"}, .lanes = 1, .link_rate_bits_per_second = 10'000'000'000});
  ASSERT_TRUE(waiting->descriptor.empty());
  forget_all();
  ASSERT_TRUE(
      cluster_->adopt_group(waiting->descriptor.group, waiting->record, {"nowhere-1", "nowhere-2"}).has_value());
  EXPECT_EQ(cluster_->stats().groups_on_fallback, 1U);
  EXPECT_EQ(cluster_->group(waiting->descriptor.group)->record->link_rate, 10'000'000'000U);
}

TEST_F(AdoptionTest, AnOlderStoreCatchesUpWithTheGroup) {
  const MemoryStore backup = store_;
  const auto rebuilt = cluster_->rebuild_group(id_, 1, {"leaf-a"});
  ASSERT_EQ(rebuilt->descriptor.epoch, 2U);
  const std::uint64_t held = reserved();
  cluster_.reset();
  store_ = backup;
  open();
  ASSERT_EQ(cluster_->renew_group(id_)->epoch, 1U);
  const auto lease = cluster_->adopt_group(id_, rebuilt->record, nodes(4));
  ASSERT_TRUE(lease.has_value()) << lease.error().message;
  EXPECT_EQ(lease->epoch, 2U);
  EXPECT_FALSE(uses(id_, "leaf-a"));
  EXPECT_EQ(reserved(), held);
  ASSERT_TRUE(adopt().has_value()) << "the older record changes nothing";
  EXPECT_EQ(cluster_->group(id_)->record->epoch, 2U);
}

TEST_F(AdoptionTest, NewGroupsGetOtherNumbersThanAdoptedOnes) {
  forget_all();
  clock_.step_wall(-1h);
  ASSERT_TRUE(adopt().has_value());
  EXPECT_GT(ask()->descriptor.group, id_);
}

TEST_F(AdoptionTest, RefusesWhatTheManagerHasNotSealed) {
  forget_all();
  for (const std::string& text : {std::string("?"), std::string(), std::string("AAAA"), std::string(400, 'A')}) {
    ASSERT_FALSE(cluster_->adopt_group(id_, text, nodes(4)).has_value()) << text;
  }
  for (std::size_t at = 0; at < granted_.record.size(); at += 7) {
    std::string changed = granted_.record;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    const auto answer = cluster_->adopt_group(id_, changed, nodes(4));
    ASSERT_FALSE(answer.has_value()) << at;
    EXPECT_EQ(answer.error().code, Errc::bad_argument);
  }
  key_ = std::move(*SigningKey::generate());
  open();
  expect_refused(adopt(), Errc::bad_argument, "it is sealed with another key");
  EXPECT_THAT(store_.groups, IsEmpty());
}

TEST_F(AdoptionTest, RefusesOtherRanksAndOtherNumbers) {
  forget_all();
  expect_refused(cluster_->adopt_group(id_, granted_.record, nodes(3)), Errc::mismatch, "'ranks' are not the");
  expect_refused(cluster_->adopt_group(id_ + 1, granted_.record, nodes(4)), Errc::mismatch, "the path names");
  EXPECT_THAT(store_.groups, IsEmpty());
}

TEST_F(AdoptionTest, RefusesARecordThatIsTooOldAndGivesAFreshOneInTime) {
  const std::string fresh = [&] {
    clock_.step_wall(settings_.record_life);
    return *cluster_->sealed_record(id_);
  }();
  forget_all();
  clock_.step_wall(2s);
  expect_refused(adopt(), Errc::mismatch, "too old");
  EXPECT_TRUE(cluster_->adopt_group(id_, fresh, nodes(4)).has_value());
}

TEST_F(AdoptionTest, RefusesAGroupThatWasGivenBackUntilItsRecordIsTooOldAnyway) {
  ASSERT_TRUE(cluster_->remove_group(id_).has_value());
  EXPECT_TRUE(cluster_->remove_group(id_).has_value()) << "the answer to the first may have been lost";
  expect_refused(adopt(), Errc::mismatch, "has been given back");
  open();  // restarts the manager
  expect_refused(adopt(), Errc::mismatch, "has been given back");
  clock_.step_wall(settings_.record_life + 2s);
  clock_.advance(2h);
  cluster_->tick();
  EXPECT_THAT(store_.ended, IsEmpty());
  expect_refused(adopt(), Errc::mismatch, "too old");
}

TEST_F(AdoptionTest, RefusesTheNumberOfAnotherGroup) {
  // The store is lost and the clock was set back: a new group gets the lost group's number before that group calls.
  forget_all();
  clock_.step_wall(-1ms);
  std::uint64_t taken = 0;
  while (taken < id_) taken = ask(1, 2)->descriptor.group;
  ASSERT_EQ(taken, id_);
  expect_refused(adopt(), Errc::mismatch, "another group has the number");
}

TEST_F(AdoptionTest, ChangesNothingWhenTheStoreIsFullAndSaysSo) {
  settings_.groups_max = 0;
  forget_all();
  expect_refused(adopt(), Errc::retry, "its limit");
  settings_.groups_max = 10;
  open();
  store_.full = true;
  expect_refused(adopt(), Errc::exhausted, "no room");
  EXPECT_THAT(cluster_->groups(), IsEmpty());
  store_.full = false;
  EXPECT_TRUE(adopt().has_value());
}

TEST_F(AdoptionTest, AdoptsAGroupThoughNoMemoryIsLeftAndSaysSo) {
  const auto spine = cluster_->aggregator("spine")->record.incarnation;
  forget_all();
  ASSERT_TRUE(cluster_
                  ->register_aggregator({.name = "spine",
                                         .host = "agg-spine-0",
                                         .data = {"10.0.0.1", 7000},
                                         .http = {"10.0.0.1", 7472},
                                         .memory_bytes = 1U << 20,
                                         .incarnation = spine})
                  .has_value());
  ASSERT_TRUE(adopt().has_value());
  EXPECT_EQ(cluster_->stats().aggregators_overcommitted, 1U);
  EXPECT_TRUE(ask()->descriptor.empty()) << "no other group gets any of this memory";
}

TEST_F(AdoptionTest, AnAggregatorKeepsItsIncarnationOnlyWhereItsNameIsForgotten) {
  const auto before = cluster_->aggregator("spine")->record.incarnation;
  EXPECT_GT(come_back("spine", "agg-spine-0", before)->incarnation, before) << "the number belongs to another group";
  forget_all();
  EXPECT_EQ(come_back("spine", "agg-spine-0", before)->incarnation, before);
  EXPECT_GT(come_back("leaf-a", "agg-leaf-0", 0)->incarnation, before);
  const auto absurd = std::uint64_t{1} << 60U;
  EXPECT_LT(come_back("leaf-b", "agg-leaf-1", absurd)->incarnation, absurd);
}

TEST_F(AdoptionTest, TheRecordGrowsWithTheAggregatorsAndNotWithTheRanks) {
  open("");
  ASSERT_TRUE(enlist("only", "h").has_value());
  const auto few = cluster_->create_group({.job = "job", .hosts = std::vector<std::string>(2, "h"), .lanes = 1});
  const auto many = cluster_->create_group({.job = "job", .hosts = std::vector<std::string>(60, "h"), .lanes = 1});
  ASSERT_FALSE(many->descriptor.empty());
  EXPECT_LT(many->record.size(), few->record.size() + 20);
}

}  // namespace
}  // namespace tributary::manager
