// Quotas, classes and reservations, on virtual time.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TenantsTest : public ClusterFixture {
 protected:
  TenantsTest() { settings_.aggregator_lease = settings_.group_lease = 1h; }
  GroupGrant ask_as(const std::string& owner, Priority priority = Priority::normal, std::uint32_t lanes = 1) {
    auto grant = cluster_->create_group(
        {.job = "job-of-" + owner, .hosts = nodes(4), .lanes = lanes, .owner = owner, .priority = priority});
    EXPECT_TRUE(grant.has_value()) << grant.error().message;
    return *grant;
  }
  void put(const std::string& tenant, const TenantRule& rule) {
    const auto ok = cluster_->change_rules([&](TenantRules& rules) { return rules.put(tenant, rule); });
    ASSERT_TRUE(ok.has_value()) << ok.error().message;
  }
  static TenantRule quota(const TenantUse& most) { return {.quota = most}; }
  Status reserve(const Reservation& wanted) {
    return cluster_->change_rules([&](TenantRules& rules) { return rules.reserve(wanted); });
  }
  TenantUse use_by(const std::string& tenant) const {
    const auto uses = cluster_->tenants().uses;
    return uses.contains(tenant) ? uses.at(tenant) : TenantUse{};
  }
  GroupGrant again(const GroupGrant& group) {
    auto grant = cluster_->rebuild_group(group.descriptor.group, group.descriptor.epoch, {});
    EXPECT_TRUE(grant.has_value()) << grant.error().message;
    return *grant;
  }
  GroupLeaseView lease(const GroupGrant& group) { return *cluster_->renew_group(group.descriptor.group); }
  /// Opens a cluster whose aggregators have room for one group.
  void open_with_room_for_one() {
    open();
    enlist_all();
    const GroupGrant measured = ask_as("measured");
    const std::uint64_t each = reserved() / 3;
    store_ = MemoryStore{};
    open();
    ASSERT_TRUE(enlist("leaf-a", "agg-leaf-0", each).has_value());
    ASSERT_TRUE(enlist("leaf-b", "agg-leaf-1", each).has_value());
    ASSERT_TRUE(enlist("spine", "agg-spine-0", each).has_value());
    put("boss", {.priority_max = Priority::high});
  }
};

TEST_F(TenantsTest, AGroupMayUseTheWholeQuotaAndNoMore) {
  open();
  enlist_all();
  const GroupGrant first = ask_as("a");
  const TenantUse one = use_by("a");
  EXPECT_EQ(one.groups, 1U);
  EXPECT_EQ(one.lanes, 1U);
  EXPECT_EQ(one.memory_bytes, reserved());
  const PathRates& rates = first.descriptor.rates;
  EXPECT_EQ(one.bytes_per_second, std::min(rates.trees, rates.links) / 8 * 6) << "four ranks and two leaves send up";
  for (std::uint64_t TenantUse::* what : {&TenantUse::groups, &TenantUse::lanes, &TenantUse::memory_bytes}) {
    TenantUse most = kNoQuota;
    most.*what = 2 * (one.*what);
    put("a", quota(most));
    const GroupGrant second = ask_as("a");
    EXPECT_THAT(second.descriptor.lanes, SizeIs(1)) << second.descriptor.reason;
    most.*what -= 1;
    put("a", quota(most));
    EXPECT_THAT(ask_as("a").descriptor.lanes, IsEmpty());
    EXPECT_THAT(ask_as("b").descriptor.lanes, SizeIs(1)) << "another tenant has no quota";
    ASSERT_TRUE(cluster_->remove_group(second.descriptor.group).has_value());
    EXPECT_EQ(use_by("a"), one);
  }
  EXPECT_EQ(cluster_->stats().denied,
            (std::map<std::string, std::uint64_t>{{"quota-groups", 1}, {"quota-lanes", 1}, {"quota-memory", 1}}));
}

TEST_F(TenantsTest, AQuotaOfTheRateCountsThePlannedRate) {
  open();
  enlist_all();
  TenantUse most = kNoQuota;
  most.bytes_per_second = 1;
  put("a", quota(most));
  const GroupGrant refused = ask_as("a");
  EXPECT_EQ(refused.code, kCodeQuotaRate);
  EXPECT_THAT(refused.descriptor.reason, HasSubstr("tenant 'a' has a quota of 1 bytes per second"));
  EXPECT_EQ(refused.retry_after_seconds, 2U) << "the job goes on by fallback and asks again";
}

TEST_F(TenantsTest, AGroupGetsTheLanesThatTheQuotaLeaves) {
  open();
  enlist_all();
  put("a", quota({kNoLimit, 3, kNoLimit, kNoLimit}));
  EXPECT_THAT(ask_as("a", Priority::normal, 2).descriptor.lanes, SizeIs(2));
  const GroupGrant fewer = ask_as("a", Priority::normal, 2);
  EXPECT_THAT(fewer.descriptor.lanes, SizeIs(1));
  EXPECT_THAT(fewer.descriptor.reason, HasSubstr("quota leaves 1 lanes"));
  EXPECT_EQ(ask_as("a", Priority::normal, 2).code, kCodeQuotaLanes);
}

TEST_F(TenantsTest, TheDefaultCountsForTenantsWithoutAnEntry) {
  open();
  enlist_all();
  put("default", quota({1, kNoLimit, kNoLimit, kNoLimit}));
  put("big", quota(kNoQuota));
  for (const char* tenant : {"a", "b", ""}) {
    EXPECT_THAT(ask_as(tenant).descriptor.lanes, SizeIs(1)) << "each tenant has its own quota";
    EXPECT_EQ(ask_as(tenant).code, kCodeQuotaGroups);
  }
  EXPECT_EQ(ask_as("big").code, "");
  EXPECT_EQ(ask_as("big").code, "");
  put("job.token", quota(kNoQuota));
  EXPECT_EQ(ask_as("").code, "");
}

TEST_F(TenantsTest, AGroupGetsTreesWhenAnotherOfItsTenantEnds) {
  open();
  enlist_all();
  put("a", quota({1, kNoLimit, kNoLimit, kNoLimit}));
  const GroupGrant first = ask_as("a"), second = ask_as("a");
  EXPECT_FALSE(lease(second).rebuild_advised);
  ASSERT_TRUE(cluster_->remove_group(first.descriptor.group).has_value());
  EXPECT_TRUE(lease(second).rebuild_advised);
  EXPECT_THAT(again(second).descriptor.lanes, SizeIs(1));
  // A rebuild of a group that has trees counts this group once.
  const GroupGrant moved = *cluster_->rebuild_group(second.descriptor.group, 1, {"spine"});
  EXPECT_NE(moved.code, kCodeQuotaGroups);
}

TEST_F(TenantsTest, RulesAndUsesOutliveTheManager) {
  open();
  enlist_all();
  put("a", {.quota = {1, kNoLimit, 1ULL << 40, kNoLimit}, .priority_max = Priority::low, .weight = 16});
  put("b", {.security = PacketSecurity::encrypt});
  ASSERT_TRUE(
      reserve({.name = "r", .tenant = "a", .job = "j", .aggregators = {"spine"}, .begin = 1, .end = 9'000'000'000})
          .has_value());
  const TenantsView before = cluster_->tenants();
  ask_as("a");
  const TenantUse use = use_by("a");
  open();
  EXPECT_EQ(cluster_->tenants().rules.tenants(), before.rules.tenants());
  EXPECT_EQ(cluster_->tenants().rules.reservations(), before.rules.reservations());
  EXPECT_EQ(use_by("a"), use);
  store_.full = true;
  EXPECT_FALSE(cluster_->change_rules([](TenantRules& rules) { return rules.remove("a"); }).has_value());
  EXPECT_EQ(cluster_->tenants().rules.tenants(), before.rules.tenants()) << "a rule that is not stored does not count";
}

TEST_F(TenantsTest, AHigherClassDisplacesALowerOneAndThisOneComesBack) {
  open_with_room_for_one();
  const GroupGrant low = ask_as("a");
  ASSERT_THAT(low.descriptor.lanes, SizeIs(1)) << low.descriptor.reason;
  const GroupGrant same = ask_as("b");
  EXPECT_EQ(same.code, kCodeNoTree) << "an equal class displaces nobody";
  const GroupGrant high = ask_as("boss", Priority::high);
  EXPECT_EQ(high.code, kCodeWaiting);
  EXPECT_EQ(again(high).code, kCodeWaiting) << "the other group has not left yet";
  EXPECT_TRUE(lease(low).leave);
  EXPECT_THAT(lease(low).reason, HasSubstr("of class high needs the place"));
  EXPECT_EQ(lease(low).code, kCodePreempted);

  const GroupGrant left = again(low);
  EXPECT_EQ(left.code, kCodePreempted);
  EXPECT_THAT(left.descriptor.lanes, IsEmpty());
  EXPECT_EQ(again(same).code, kCodeNoTree) << "the place is kept for the higher class";
  const GroupGrant has = again(high);
  EXPECT_THAT(has.descriptor.lanes, SizeIs(1)) << has.descriptor.reason;
  EXPECT_EQ(again(left).code, kCodePreempted);
  EXPECT_FALSE(lease(has).leave);

  ASSERT_TRUE(cluster_->remove_group(high.descriptor.group).has_value());
  EXPECT_TRUE(lease(low).rebuild_advised);
  EXPECT_FALSE(lease(low).leave);
  EXPECT_THAT(again(left).descriptor.lanes, SizeIs(1));
  EXPECT_EQ(cluster_->stats().displaced, 1U);
  EXPECT_EQ(cluster_->stats().denied.at(kCodeWaiting), 2U);
  EXPECT_EQ(cluster_->stats().denied.at(kCodePreempted), 2U);
  EXPECT_EQ(cluster_->stats().denied.at(kCodeNoTree), 2U);
  EXPECT_EQ(cluster_->stats().reasons.of(Reason::no_tree), 2U);
  EXPECT_EQ(cluster_->stats().reasons.of(Reason::preempted), 3U) << "two denials, and the advice that came thrice";
  EXPECT_EQ(cluster_->stats().reasons.of(Reason::capacity_changed), 1U);
}

TEST_F(TenantsTest, NoGroupGetsAClassAboveItsTenants) {
  open_with_room_for_one();
  const GroupGrant first = ask_as("a");
  const GroupGrant second = ask_as("b", Priority::high);
  EXPECT_EQ(second.code, kCodeNoTree);
  EXPECT_EQ(cluster_->group(second.descriptor.group)->record->priority, Priority::normal);
  EXPECT_FALSE(lease(first).leave);
}

TEST_F(TenantsTest, AGroupThatWaitedAndIsGoneDisplacesNobody) {
  open_with_room_for_one();
  const GroupGrant low = ask_as("a");
  const GroupGrant high = ask_as("boss", Priority::high);
  EXPECT_TRUE(lease(low).leave);
  ASSERT_TRUE(cluster_->remove_group(high.descriptor.group).has_value());
  EXPECT_FALSE(lease(low).leave);
  EXPECT_THAT(cluster_->group(low.descriptor.group)->record->lanes, SizeIs(1));
}

TEST_F(TenantsTest, AReservationKeepsOthersOffUntilItsEnd) {
  open();
  enlist_all();
  const std::int64_t now = clock_.unix_seconds();
  const std::vector<std::string> all{"leaf-a", "leaf-b", "spine"};
  const GroupGrant other = ask_as("other");
  ASSERT_TRUE(reserve({.name = "r", .tenant = "a", .job = "", .aggregators = all, .begin = now + 10, .end = now + 20})
                  .has_value());
  EXPECT_EQ(ask_as("b").code, "") << "it has not begun";
  advance(10s);
  const GroupGrant refused = ask_as("b");
  EXPECT_EQ(refused.code, kCodeReserved);
  EXPECT_THAT(refused.descriptor.reason, HasSubstr("3 are reserved for other tenants"));
  EXPECT_THAT(ask_as("a").descriptor.lanes, SizeIs(1));
  EXPECT_FALSE(lease(other).leave) << "trees that exist stay, if the reservation is not exclusive";
  advance(9s);
  EXPECT_EQ(again(refused).code, kCodeReserved);
  EXPECT_THAT(cluster_->tenants().rules.reservations(), SizeIs(1));
  advance(1s);
  EXPECT_TRUE(lease(refused).rebuild_advised);
  EXPECT_THAT(again(refused).descriptor.lanes, SizeIs(1));
  EXPECT_THAT(cluster_->tenants().rules.reservations(), IsEmpty());
  EXPECT_EQ(store_.values.at(TenantRules::kReservationsKey), "[]");
}

TEST_F(TenantsTest, AnExclusiveReservationSendsOthersAwayAndAJobsReservationIsForThisJob) {
  open();
  enlist_all();
  const std::int64_t now = clock_.unix_seconds();
  const GroupGrant other = ask_as("other"), holder = ask_as("a");
  ASSERT_TRUE(reserve({.name = "r",
                       .tenant = "a",
                       .job = "job-of-a",
                       .aggregators = {"spine"},
                       .begin = now + 5,
                       .end = now + 20,
                       .exclusive = true})
                  .has_value());
  EXPECT_FALSE(lease(other).leave);
  advance(5s);
  EXPECT_TRUE(lease(other).leave);
  EXPECT_FALSE(lease(holder).leave);
  EXPECT_THAT(lease(other).reason, HasSubstr("reservation 'r' has begun"));
  EXPECT_EQ(lease(other).code, "reservation-began");
  EXPECT_THAT(again(other).descriptor.lanes, SizeIs(1)) << "there are trees without the spine";
  EXPECT_FALSE(uses(other.descriptor.group, "spine"));
  const auto another = cluster_->create_group({.job = "another", .hosts = nodes(4), .lanes = 1, .owner = "a"});
  EXPECT_FALSE(uses(another->descriptor.group, "spine"));
  EXPECT_TRUE(uses(ask_as("a").descriptor.group, "spine"));
}

TEST_F(TenantsTest, AGroupWithLessSecurityThanItsTenantMustHaveGetsNoTrees) {
  open();
  enlist_all();
  put("bank", {.security = PacketSecurity::authenticate});
  const GroupGrant refused = ask_as("bank");
  EXPECT_EQ(refused.code, kCodeSecurity);
  EXPECT_EQ(refused.retry_after_seconds, 2U) << "the job goes on between its ranks";
  EXPECT_THAT(refused.descriptor.reason, HasSubstr("groups of tenant 'bank' need security 'authenticate', and this "
                                                   "group has 'off'; set TRIBUTARY_SECURITY=authenticate on every"));
  EXPECT_EQ(ask_as("a").code, "") << "the demand is this tenant's alone";
  EXPECT_EQ(cluster_->stats().denied.at(kCodeSecurity), 1U);
  put("bank", {});
  EXPECT_TRUE(lease(refused).rebuild_advised) << "the demand is gone";
  EXPECT_THAT(again(refused).descriptor.lanes, SizeIs(1));
}

TEST_F(TenantsTest, TheManagersDemandCountsForEveryTenantAndNoTenantLowersIt) {
  settings_.security = PacketSecurity::encrypt;
  open();
  enlist_all();
  put("a", {.security = PacketSecurity::authenticate});
  for (const char* tenant : {"a", "b", ""}) {
    const GroupGrant refused = ask_as(tenant);
    EXPECT_EQ(refused.code, kCodeSecurity) << tenant;
    EXPECT_THAT(refused.descriptor.reason, HasSubstr("set TRIBUTARY_SECURITY=encrypt on every rank"));
  }
  EXPECT_THAT(cluster_->plan({.job = "j", .hosts = nodes(4), .lanes = 1})->plan.lanes, SizeIs(1))
      << "a plan says what is possible";
}

TEST_F(TenantsTest, NoTreeLeadsThroughAnAggregatorThatDemandsMoreSecurity) {
  open();
  ASSERT_TRUE(enlist("leaf-a", "agg-leaf-0").has_value());
  ASSERT_TRUE(enlist("leaf-b", "agg-leaf-1").has_value());
  ASSERT_TRUE(enlist("spine", "agg-spine-0", kMemory, PacketSecurity::encrypt).has_value());
  const GroupGrant first = ask_as("a");
  EXPECT_THAT(first.descriptor.lanes, SizeIs(1)) << first.descriptor.reason;
  EXPECT_FALSE(uses(first.descriptor.group, "spine"));
  ASSERT_TRUE(cluster_->remove_aggregator("leaf-a").has_value());
  ASSERT_TRUE(cluster_->remove_aggregator("leaf-b").has_value());
  const GroupGrant refused = ask_as("a");
  EXPECT_EQ(refused.code, kCodeSecurity);
  EXPECT_THAT(refused.descriptor.reason, HasSubstr("1 is closed to groups with less security than 'encrypt'"));
  EXPECT_THAT(refused.descriptor.reason, HasSubstr("; set TRIBUTARY_SECURITY=encrypt on every rank"));
  open();
  EXPECT_EQ(again(refused).code, kCodeSecurity) << "the demand outlives the manager";
}

TEST_F(TenantsTest, TokensCarryTheWeightOfTheTenant) {
  open();
  enlist_all();
  put("big", {.weight = 4});
  const auto weight_of = [](const GroupGrant& grant) {
    return read_claims(grant.descriptor.lanes.at(0).entries.at(0).tokens.front())->weight;
  };
  const GroupGrant big = ask_as("big");
  EXPECT_EQ(weight_of(big), 4);
  EXPECT_EQ(weight_of(ask_as("small")), 1);
  const auto page = cluster_->places(big.descriptor.group, 1, 0, 1);
  ASSERT_TRUE(page.has_value()) << page.error().message;
  EXPECT_EQ(read_claims(page->lanes.at(0).at(0).tokens.front())->weight, 4);
}

TEST_F(TenantsTest, TwoReservationsNeverHaveOneAggregatorAtOnce) {
  TenantRules rules;
  const auto wanted = [](const char* name, std::int64_t begin, std::int64_t end) {
    return Reservation{.name = name, .tenant = "a", .job = "", .aggregators = {"x"}, .begin = begin, .end = end};
  };
  ASSERT_TRUE(rules.reserve(wanted("one", 10, 20)).has_value());
  EXPECT_EQ(rules.reserve(wanted("two", 19, 30)).error().code, Errc::mismatch);
  EXPECT_EQ(rules.reserve(wanted("two", 5, 11)).error().code, Errc::mismatch);
  EXPECT_TRUE(rules.reserve(wanted("two", 20, 30)).has_value()) << "one ends when the other begins";
  EXPECT_TRUE(rules.reserve(wanted("three", 5, 10)).has_value());
  EXPECT_EQ(rules.reserve(wanted("four", 9, 9)).error().code, Errc::bad_argument);
  EXPECT_EQ(rules.reserve(wanted("two", 40, 50)).error().code, Errc::mismatch) << "the name is in use";
  Reservation two = wanted("five", 12, 15);
  EXPECT_FALSE(rules.reserve(two, 2, {"x", "y"}).has_value());
  ASSERT_TRUE(rules.reserve(two, 2, {"x", "y", "z"}).has_value());
  EXPECT_EQ(rules.reservations().at("five").aggregators, (std::vector<std::string>{"y", "z"}));
}

}  // namespace
}  // namespace tributary::manager
