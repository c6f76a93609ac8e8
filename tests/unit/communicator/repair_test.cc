// Rank 0 says which results to move after a tree is lost, and may be wrong.
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
  transport::TimePoint lane_progress(const Operation&) override { return {}; }
  void lane_fault(const MismatchReport&) override {}
  void segments_finished(Operation&) override {}
};

class Repairing : public testing::Test {
 protected:
  Status start(const Moves& moves) {
    LaneDescriptor descriptor;
    descriptor.window = 4;
    descriptor.segment_bytes = 256;
    LaneLink lane(user_, descriptor, {.rank = 1, .nranks = 2});
    Repair repair(mesh_, 1, 2, {&lane});
    return repair.start(moves, [this] { done_ = true; });
  }
  Nobody user_;
  transport::SimNetwork network_;
  Directory directory_{1, 2};
  PeerMesh mesh_{{.first = network_.transport("here")}, directory_, 1, Secret{}, std::chrono::seconds(1)};
  bool done_ = false;
};

TEST_F(Repairing, MovesNothingIfAllRanksHoldTheSame) {
  EXPECT_TRUE(start({{.own = 0, .lo = 0, .hi = 0}}));
  EXPECT_TRUE(done_);
}

TEST_F(Repairing, RefusesOtherHoldingsThanThisRankHas) {
  const LaneMoves nothing;
  for (const Moves& wrong : std::vector<Moves>{{},
                                               {nothing, nothing},
                                               {{.own = 1, .lo = 0, .hi = 1}},
                                               {{.own = 0, .lo = 1, .hi = 1, .from = 0}},
                                               {{.own = 0, .lo = 0, .hi = 0, .from = 0}},
                                               {{.own = 0, .lo = 0, .hi = 1}},
                                               {{.own = 0, .lo = 0, .hi = 1, .from = 1}},
                                               {{.own = 0, .lo = 0, .hi = 1, .from = 2}},
                                               {{.own = 0, .lo = 0, .hi = 0, .to = {{1, 0}}}},
                                               {{.own = 0, .lo = 0, .hi = 0, .to = {{7, 0}}}},
                                               {{.own = 0, .lo = 0, .hi = 0, .to = {{0, 1}}}},
                                               {{.own = 0, .lo = 0, .hi = 0, .to = {{0, 0}, {0, 0}}}},
                                               {{.own = 0, .lo = 0, .hi = 1, .from = 0, .to = {{0, 0}}}},
                                               {{.own = 0, .lo = 0, .hi = 0, .wanted = {0}}}}) {
    const Status status = start(wrong);
    ASSERT_FALSE(status) << encode(wrong);
    EXPECT_EQ(status.error().code, Errc::corrupt);
  }
  EXPECT_FALSE(done_);
}

TEST_F(Repairing, RefusesResultsThatAreFurtherApartThanAWindow) {
  for (const std::uint64_t far : {5U, 6U, 1000U}) {
    const Status apart = start({{.own = 0, .lo = 0, .hi = far, .from = 0}});
    ASSERT_FALSE(apart);
    EXPECT_EQ(apart.error().message, "recovery: results of lane 0 are further apart than a window");
  }
  const Status strange = start({{.own = 0, .lo = 0, .hi = 2, .from = 0}});
  ASSERT_FALSE(strange);
  EXPECT_NE(strange.error().message.find("no record"), std::string::npos)
      << "of what this rank has never contributed to: " << strange.error().message;
}

}  // namespace
}  // namespace tributary::client
