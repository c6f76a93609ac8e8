// Groups over a single aggregator, for measuring the way to it.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"

namespace tributary::manager {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class OneAggregatorTest : public ClusterFixture {
 protected:
  Result<GroupGrant> measure(const std::string& name, std::uint32_t window = 4) {
    return cluster_->create_group(
        {.job = "doctor", .hosts = nodes(1), .window = window, .segment_bytes = 65536, .aggregator = name});
  }
};

TEST_F(OneAggregatorTest, AGroupOfOneRankGetsALaneOverTheNamedAggregator) {
  open();
  enlist_all();
  const auto grant = measure("spine");
  ASSERT_TRUE(grant.has_value()) << grant.error().message;
  ASSERT_THAT(grant->descriptor.lanes, SizeIs(1)) << grant->descriptor.reason;
  EXPECT_EQ(grant->descriptor.lanes[0].entries.at(0).aggregator_name, "spine");
  EXPECT_EQ(grant->descriptor.lanes[0].levels, 1U);
  EXPECT_EQ(grant->descriptor.lanes[0].window, 4U);
  EXPECT_GT(reserved(), 0U);
  ASSERT_TRUE(cluster_->remove_group(grant->descriptor.group).has_value());
  EXPECT_EQ(reserved(), 0U);
}

TEST_F(OneAggregatorTest, EachLiveAddressHasALane) {
  open();
  ASSERT_TRUE(cluster_
                  ->register_aggregator({.name = "two",
                                         .host = "agg-leaf-0",
                                         .data = {"10.0.0.1", 7471},
                                         .http = {"10.0.0.1", 7472},
                                         .memory_bytes = kMemory,
                                         .children_max = kChildrenMax,
                                         .version = "test",
                                         .data_more = {{"10.1.0.1", 7471}, {"10.2.0.1", 7471}},
                                         .data_down = {1}})
                  .has_value());
  const auto grant = measure("two");
  ASSERT_THAT(grant->descriptor.lanes, SizeIs(2)) << grant->descriptor.reason;
  EXPECT_EQ(grant->descriptor.lanes[0].entries.at(0).aggregator.host, "10.0.0.1");
  EXPECT_EQ(grant->descriptor.lanes[1].entries.at(0).aggregator.host, "10.2.0.1");
}

TEST_F(OneAggregatorTest, WithoutRoomOrWhileItDrainsThereIsNoTreeButAReason) {
  open();
  ASSERT_TRUE(enlist("small", "agg-leaf-0", 100'000).has_value());
  EXPECT_THAT(measure("small")->descriptor.reason, HasSubstr("aggregator small has no room"));
  enlist_all();
  ASSERT_TRUE(cluster_->set_draining("spine", true).has_value());
  const auto grant = measure("spine");
  EXPECT_THAT(grant->descriptor.lanes, IsEmpty());
  EXPECT_THAT(grant->descriptor.reason, HasSubstr("aggregator spine is draining"));
}

TEST_F(OneAggregatorTest, AnUnknownNameIsRefused) {
  open();
  enlist_all();
  EXPECT_THAT(measure("nobody").error().message, HasSubstr("no aggregator has the name 'nobody'"));
}

TEST_F(OneAggregatorTest, MoreRanksThanChildrenAreRefusedWithAReason) {
  open(leaf_spine_yaml(2, 70, 1));
  enlist_all();
  const auto grant = cluster_->create_group(
      {.job = "j", .hosts = nodes(65), .window = 4, .segment_bytes = 256, .aggregator = "spine"});
  ASSERT_TRUE(grant.has_value()) << grant.error().message;
  EXPECT_THAT(grant->descriptor.reason, HasSubstr("has no room"));
}

}  // namespace
}  // namespace tributary::manager
