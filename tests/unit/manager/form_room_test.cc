// The length of buffers for groups in whose trees forms of exact sums travel.
#include <gmock/gmock.h>

#include "tests/unit/manager/cluster_fixture.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::manager {
namespace {

class FormRoomTest : public ClusterFixture {
 protected:
  void SetUp() override {
    settings_.segment_bytes = 0;
    settings_.window = 0;
    open();
  }
  LaneDescriptor lane(FormSenders senders, std::uint32_t levels, std::uint32_t segment_bytes = 0) {
    const auto grant = cluster_->create_group({.job = "job",
                                               .hosts = nodes(4),
                                               .lanes = 1,
                                               .segment_bytes = segment_bytes,
                                               .levels = levels,
                                               .form_senders = senders});
    EXPECT_TRUE(grant.has_value() && grant->descriptor.lanes.size() == 1)
        << (grant ? grant->descriptor.reason : grant.error().message);
    return grant && !grant->descriptor.lanes.empty() ? grant->descriptor.lanes[0] : LaneDescriptor{};
  }
};

TEST_F(FormRoomTest, BuffersAreLongerOnlyWhereFormsTravel) {
  enlist_all();
  const LaneDescriptor plain = lane(FormSenders::nobody, 2);
  const std::uint32_t longer = form_buffer_bytes(plain.segment_bytes);
  ASSERT_GT(longer, plain.segment_bytes);
  EXPECT_EQ(lane(FormSenders::aggregators, 1).segment_bytes, plain.segment_bytes) << "no aggregator below another one";
  EXPECT_EQ(lane(FormSenders::aggregators, 2).segment_bytes, longer);
  EXPECT_EQ(lane(FormSenders::aggregators, 2).window, plain.window);
  EXPECT_EQ(lane(FormSenders::members, 1).segment_bytes, longer);
}

TEST_F(FormRoomTest, AChosenLengthHolds) {
  enlist_all();
  EXPECT_EQ(lane(FormSenders::members, 1, 4096).segment_bytes, 4096U);
  settings_.segment_bytes = 32U << 10;
  open();
  enlist_all();
  EXPECT_EQ(lane(FormSenders::aggregators, 2).segment_bytes, 32U << 10);
}

TEST_F(FormRoomTest, AnAggregatorWithLittleMemoryHasShortBuffers) {
  const LaneDescriptor plain = [&] {
    enlist_all();
    return lane(FormSenders::nobody, 1);
  }();
  open();
  const std::uint64_t enough = lane_reservation_bytes(4, plain.window, plain.segment_bytes);
  ASSERT_TRUE(enlist("small", "agg-spine-0", 2 * enough).has_value());
  ASSERT_TRUE(cluster_->set_draining("leaf-a", true).has_value());
  ASSERT_TRUE(cluster_->set_draining("leaf-b", true).has_value());
  ASSERT_TRUE(cluster_->set_draining("spine", true).has_value());
  EXPECT_EQ(lane(FormSenders::members, 1).segment_bytes, plain.segment_bytes);
}

TEST_F(FormRoomTest, AnAggregatorWithoutRoomForLongBuffersHasThemHalfAsLong) {
  const LaneDescriptor plain = [&] {
    enlist_all();
    return lane(FormSenders::nobody, 1);
  }();
  open();
  const std::uint32_t half = form_buffer_bytes(plain.segment_bytes) / 2;
  ASSERT_TRUE(enlist("small", "agg-spine-0", lane_reservation_bytes(5, plain.window, half)).has_value());
  for (const char* name : {"leaf-a", "leaf-b", "spine"}) ASSERT_TRUE(cluster_->set_draining(name, true).has_value());
  EXPECT_EQ(lane(FormSenders::members, 1).segment_bytes, half);
}

// Short buffers are slower than long ones, and quicker than no trees.
TEST_F(FormRoomTest, AQuotaOfMemoryLeavesShortBuffers) {
  enlist_all();
  const std::uint64_t before = reserved();
  const LaneDescriptor plain = lane(FormSenders::nobody, 2);
  const std::uint64_t plain_bytes = reserved() - before;
  const auto ok = cluster_->change_rules([&](TenantRules& rules) {
    return rules.put(
        "a", {.quota = {.groups = 9, .lanes = 9, .memory_bytes = 2 * plain_bytes, .bytes_per_second = UINT64_MAX}});
  });
  ASSERT_TRUE(ok.has_value()) << ok.error().message;
  const auto grant = cluster_->create_group({.job = "job",
                                             .hosts = nodes(4),
                                             .lanes = 1,
                                             .levels = 2,
                                             .owner = "a",
                                             .form_senders = FormSenders::aggregators});
  ASSERT_TRUE(grant.has_value());
  ASSERT_EQ(grant->descriptor.lanes.size(), 1U) << grant->descriptor.reason;
  EXPECT_EQ(grant->descriptor.lanes[0].segment_bytes, plain.segment_bytes);
}

TEST_F(FormRoomTest, RebuiltTreesHaveTheBuffersThatFit) {
  enlist_all();
  const auto grant =
      cluster_->create_group({.job = "job", .hosts = nodes(4), .lanes = 1, .form_senders = FormSenders::members});
  ASSERT_TRUE(grant.has_value() && grant->descriptor.lanes.size() == 1);
  const std::uint32_t longer = grant->descriptor.lanes[0].segment_bytes;
  const std::uint32_t window = grant->descriptor.lanes[0].window;
  ASSERT_TRUE(enlist("small", "agg-spine-0", 2 * lane_reservation_bytes(4, window, longer / 4)).has_value());
  for (const char* name : {"leaf-a", "leaf-b", "spine"}) ASSERT_TRUE(cluster_->set_draining(name, true).has_value());
  const auto rebuilt = cluster_->rebuild_group(grant->descriptor.group, grant->descriptor.epoch, {});
  ASSERT_TRUE(rebuilt.has_value() && rebuilt->descriptor.lanes.size() == 1) << rebuilt->descriptor.reason;
  EXPECT_LT(rebuilt->descriptor.lanes[0].segment_bytes, longer);
}

TEST(FormBuffer, HasABound) {
  EXPECT_EQ(form_buffer_bytes(16U << 10), 320U << 10);
  EXPECT_EQ(form_buffer_bytes(64U << 10), kFormBufferBytesMax);
  EXPECT_EQ(form_buffer_bytes(768U << 10), 768U << 10) << "never shorter than before";
}

TEST(FormBuffer, SegmentsHaveAsManyValuesAsOthers) {
  for (const std::uint32_t other : {16U << 10, 32U << 10}) {
    const std::uint32_t buffer = form_buffer_bytes(other);
    EXPECT_EQ(2 * form_segment_elements(DType::float16, buffer), other);
    EXPECT_EQ(4 * form_segment_elements(DType::float32, buffer), other);
    EXPECT_EQ(2 * form_segment_elements(DType::bfloat16, buffer), other);
  }
  EXPECT_EQ(form_segment_elements(DType::float32, 64U << 10), form_elements_max(DType::float32, 64U << 10))
      << "a buffer that a setting has made short has as many values as fit";
}

}  // namespace
}  // namespace tributary::manager
