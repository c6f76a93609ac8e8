// What is moved after a tree is lost follows from all ranks' holdings; they come from rank 0, which may be wrong.
#include "client/recovery/repair.h"

#include <gtest/gtest.h>

#include "tributary/transport/sim_network.h"

namespace tributary::client {
namespace {

class Nobody final : public LaneUser {
 public:
  Operation* started_operation(std::uint64_t) override { return nullptr; }
  std::uint64_t first_operation_kept() const override { return 0; }
  void lane_ready(std::uint32_t) override {}
  void lane_failed(std::uint32_t, const std::string&) override {}
  void lane_progress() override {}
  void lane_fault(const MismatchReport&) override {}
  void segments_finished(Operation&) override {}
};

class Repairing : public testing::Test {
 protected:
  Status start(const std::vector<Holdings>& by_rank) {
    LaneDescriptor descriptor;
    descriptor.window = 4;
    descriptor.segment_bytes = 256;
    LaneLink lane(user_, descriptor, {.rank = 1, .nranks = 2});
    Repair repair(mesh_, 1, 2, {&lane});
    return repair.start(by_rank, [this] { done_ = true; });
  }
  Nobody user_;
  transport::SimNetwork network_;
  std::vector<Endpoint> endpoints_{2};
  PeerMesh mesh_{{.first = network_.transport("here"), .first_at = endpoints_}, 1, Secret{}, std::chrono::seconds(1)};
  bool done_ = false;
};

TEST_F(Repairing, HasNothingToMoveWhereAllHoldTheSame) {
  EXPECT_TRUE(start({{0}, {0}}));
  EXPECT_TRUE(done_);
}

TEST_F(Repairing, RefusesOtherHoldingsThanThisRankHas) {
  for (const std::vector<Holdings>& wrong :
       std::vector<std::vector<Holdings>>{{{0}, {1}}, {{1}, {1}}, {{0}, {}}, {{0}, {0, 0}}, {{0}}, {{}, {}}}) {
    const Status status = start(wrong);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Errc::corrupt);
  }
  EXPECT_FALSE(done_);
}

TEST_F(Repairing, RefusesResultsThatAreFurtherApartThanAWindow) {
  for (const std::uint64_t far : {5U, 6U, 1000U}) {
    const Status status = start({{far}, {0}});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message, "recovery: results of lane 0 are further apart than a window");
  }
  EXPECT_FALSE(start({{2}, {0}})) << "of what this rank has never contributed to";
}

TEST(Ranges, AreFromTheLeastToTheGreatestOfEachLaneAndAtMostAWindowLong) {
  const auto ranges = ranges_of({{7, 0}, {3, 4}, {5, 1}}, 4);
  ASSERT_TRUE(ranges);
  EXPECT_EQ((*ranges)[0].lo, 3U);
  EXPECT_EQ((*ranges)[0].hi, 7U);
  EXPECT_EQ((*ranges)[1].lo, 0U);
  EXPECT_EQ((*ranges)[1].hi, 4U);
  const std::vector<std::vector<Holdings>> wrong{
      {{8, 0}, {3, 4}, {5, 1}}, {{7, 0}, {3, 5}, {5, 1}}, {{UINT64_MAX, 0}, {0, 0}, {0, 0}}, {{7, 0}, {3}, {5, 1}}};
  for (const auto& holdings : wrong) {
    const auto refused = ranges_of(holdings, 4);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::corrupt);
  }
}

}  // namespace
}  // namespace tributary::client
