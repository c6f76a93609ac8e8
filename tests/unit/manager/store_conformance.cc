#include "tests/unit/manager/store_conformance.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/manager/store_records.h"

namespace tributary::manager {
namespace {

using ::testing::ElementsAre;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

TEST_P(StoreConformance, StartsEmpty) {
  const auto snapshot = reopen().load();
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_TRUE(snapshot->aggregators.empty());
  EXPECT_TRUE(snapshot->groups.empty());
  EXPECT_TRUE(snapshot->values.empty());
}

TEST_P(StoreConformance, KeepsRecordsUntilTheyAreRemoved) {
  Store& store = reopen();
  ASSERT_TRUE(store.put(aggregator_record("a", 1)).has_value());
  ASSERT_TRUE(store.put(aggregator_record("b", 2)).has_value());
  ASSERT_TRUE(store.put(aggregator_record("a", 3)).has_value());
  ASSERT_TRUE(store.remove_aggregator("b").has_value());
  ASSERT_TRUE(store.put(group_record(10, 1)).has_value());
  ASSERT_TRUE(store.put(group_record(11, 1)).has_value());
  ASSERT_TRUE(store.put(group_record(10, 2)).has_value());
  ASSERT_TRUE(store.remove_group(11).has_value());
  ASSERT_TRUE(store.put_value("k", "v1").has_value());
  ASSERT_TRUE(store.put_value("k", "v2").has_value());
  const auto snapshot = reopen().load();
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_THAT(snapshot->aggregators, ElementsAre(aggregator_record("a", 3)));
  EXPECT_THAT(snapshot->groups, ElementsAre(group_record(10, 2)));
  EXPECT_EQ(snapshot->values, (std::map<std::string, std::string>{{"k", "v2"}}));
}

TEST_P(StoreConformance, MayRemoveARecordThatDoesNotExist) {
  Store& store = reopen();
  EXPECT_TRUE(store.remove_aggregator("nobody").has_value());
  EXPECT_TRUE(store.remove_group(77).has_value());
  EXPECT_TRUE(store.forget_ended(INT64_MAX).has_value());
}

TEST_P(StoreConformance, KeepsNamesAndTextsOfAllCharacters) {
  const std::string odd = "a/b \"\\ \u00e4\n\t%";
  Store& store = reopen();
  ASSERT_TRUE(store.put(aggregator_record(odd, 1)).has_value());
  ASSERT_TRUE(store.put(aggregator_record("a", 2)).has_value());
  ASSERT_TRUE(store.put_value(odd, odd + odd).has_value());
  ASSERT_TRUE(store.put_value("empty", "").has_value());
  const auto snapshot = reopen().load();
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_EQ(snapshot->aggregators.size(), 2U);
  EXPECT_EQ(snapshot->values.at(odd), odd + odd);
  EXPECT_EQ(snapshot->values.at("empty"), "");
}

TEST_P(StoreConformance, KeepsValuesAndGroupsOfManyMegabytes) {
  std::string large;
  for (int i = 0; large.size() < (5U << 20); ++i) large += std::to_string(i) + ",";
  GroupRecord many = group_record(5, 1);
  many.lanes.clear();
  many.hosts.assign(100'000, "a-host-with-a-name-of-some-length");
  for (const std::size_t bytes : {large.size(), large.size() / 3, std::size_t{10}, large.size()}) {
    ASSERT_TRUE(reopen().put_value("large", large.substr(0, bytes)).has_value());
    ASSERT_TRUE(store_->put(many).has_value());
    const auto snapshot = reopen().load();
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
    EXPECT_TRUE(snapshot->values.at("large") == large.substr(0, bytes)) << bytes;
    EXPECT_TRUE(snapshot->groups.at(0) == many);
    many.hosts.resize(many.hosts.size() / 2);
  }
  ASSERT_TRUE(store_->end_group(5, 100).has_value());
  EXPECT_TRUE(reopen().load()->groups.empty());
}

TEST_P(StoreConformance, KeepsThousandsOfRecords) {
  Store& store = reopen();
  constexpr std::uint64_t kGroups = 1500;
  for (std::uint64_t id = 1; id <= kGroups; ++id) ASSERT_TRUE(store.put(group_record(id, 1)).has_value());
  const auto snapshot = reopen().load();
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  ASSERT_EQ(snapshot->groups.size(), kGroups);
  std::uint64_t sum = 0;
  for (const GroupRecord& it : snapshot->groups) sum += it.id;
  EXPECT_EQ(sum, kGroups * (kGroups + 1) / 2);
}

TEST_P(StoreConformance, RemembersReturnedGroupsUntilItMayForgetThem) {
  Store& before = reopen();
  ASSERT_TRUE(before.put(group_record(1, 1)).has_value());
  ASSERT_TRUE(before.put(group_record(2, 1)).has_value());
  ASSERT_TRUE(before.end_group(1, 1000).has_value());
  ASSERT_TRUE(before.end_group(3, 2000).has_value());
  ASSERT_TRUE(before.remove_group(2).has_value());
  Store& store = reopen();
  EXPECT_TRUE(store.load()->groups.empty());
  EXPECT_EQ(store.has_ended(1), true);
  EXPECT_EQ(store.has_ended(2), false);
  EXPECT_EQ(store.has_ended(3), true);
  EXPECT_THAT(*store.ended_groups(), ElementsAre(EndedGroup{1, 1000}, EndedGroup{3, 2000}));
  ASSERT_TRUE(store.forget_ended(1001).has_value());
  EXPECT_EQ(store.has_ended(1), false);
  EXPECT_EQ(store.has_ended(3), true);
}

TEST_P(StoreConformance, EachLeadershipHasAHigherFence) {
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t fence = reopen().fence();
    EXPECT_GT(fence, last);
    last = fence;
    ASSERT_TRUE(store_->put_value("k", std::to_string(i)).has_value());
    EXPECT_EQ(store_->fence(), fence) << "a write does not change it";
  }
}

TEST_P(StoreConformance, RaisesItsFenceAboveOneThatWasSeen) {
  const std::uint64_t seen = reopen().fence() + 1'000'000;
  ASSERT_TRUE(store_->raise_fence(seen).has_value());
  const std::uint64_t raised = store_->fence();
  EXPECT_GT(raised, seen);
  ASSERT_TRUE(store_->put_value("k", "v").has_value()) << "the leadership goes on";
  EXPECT_GT(reopen().fence(), raised);
}

}  // namespace
}  // namespace tributary::manager
