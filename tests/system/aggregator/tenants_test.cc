// Two tenants on the data port of a real aggregator: one floods it with valid tokens, and the other's group starts and
// runs.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tests/system/aggregator/daemon_rig.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

class DaemonTenants : public DaemonTest {
 protected:
  DaemonProcess& start(const std::string& settings) {
    return aggregator("root", {"--config", folder_.write("a.yaml", settings)});
  }
  /// Returns the join of one child of a lane of a tenant. Each group is another lane.
  [[nodiscard]] Bytes join_of_tenant(const std::string& tenant, std::uint64_t group, std::uint16_t child,
                                     std::uint16_t children) const {
    TokenClaims claims = claims_of("root", child, children);
    claims.tenant = tenant;
    claims.group = group;
    return join_of({claims});
  }
  /// Returns the two children of a lane of the group of the rig in the name of the tenant, joined and ready.
  std::vector<Child*> lane_of_tenant(const DaemonProcess& root, const std::string& tenant) {
    ++epoch_;
    std::vector<Child*> ranks;
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      ranks.push_back(&child(root.endpoint(), join_of_tenant(tenant, kGroup, rank, 2)));
    }
    EXPECT_TRUE(run_until([&] { return ranks[0]->ready && ranks[1]->ready; })) << ranks[0]->refused.value_or("");
    return ranks;
  }
  /// Starts a lane of the group of the rig in the name of the tenant, reduces one segment, and ends the lane.
  void expect_runs(const DaemonProcess& root, const std::string& tenant) {
    const auto ranks = lane_of_tenant(root, tenant);
    ASSERT_TRUE(ranks[0]->ready && ranks[1]->ready);
    for (const auto& lane : root.lanes()) {
      if (lane["group"] == kGroup) {
        EXPECT_EQ(lane["tenant"], tenant);
      }
    }
    for (std::uint32_t rank = 0; rank < 2; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
    ASSERT_TRUE(run_until([&] { return ranks[0]->results.size() == 1 && ranks[1]->results.size() == 1; }));
    EXPECT_EQ(ranks[1]->results[0].payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
    for (Child* rank : ranks) rank->leave();
    EXPECT_TRUE(run_until([&] { return ranks[0]->closed && ranks[1]->closed; }));
  }
  /// Sends valid joins of the tenant, each for a lane of its own that never forms. Returns the children.
  std::vector<Child*> flood(const DaemonProcess& root, const std::string& tenant, int joins) {
    std::vector<Child*> all;
    for (int i = 0; i < joins; ++i) all.push_back(&child(root.endpoint(), join_of_tenant(tenant, next_group_++, 0, 2)));
    return all;
  }
  /// Returns the times, in ascending order, from the connect of two ranks until their lane is ready.
  std::vector<std::chrono::microseconds> start_times(const DaemonProcess& root, const std::string& tenant, int count) {
    std::vector<std::chrono::microseconds> times;
    for (int i = 0; i < count; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const auto ranks = lane_of_tenant(root, tenant);
      times.push_back(std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin));
      for (Child* rank : ranks) rank->leave();
      EXPECT_TRUE(run_until([&] { return ranks[0]->closed && ranks[1]->closed; }));
    }
    std::ranges::sort(times);
    return times;
  }
  /// Starts a process that floods the aggregator with valid joins of the tenant until it is destroyed.
  std::unique_ptr<Process> flood_process(const DaemonProcess& root, const std::string& tenant) {
    std::string joins;
    for (int i = 0; i < 1000; ++i) {
      joins += to_hex(join_of_tenant(tenant, next_group_++, 0, 2)) + '\n';
    }
    return std::make_unique<Process>(
        std::vector<std::string>{FLOOD_PROGRAM, std::to_string(root.data_port), folder_.write("joins", joins)},
        folder_.file("flood.log"));
  }
  static std::ptrdiff_t refused(const std::vector<Child*>& all) {
    return std::ranges::count_if(all, [](const Child* one) { return one->refused.has_value(); });
  }

  std::uint64_t next_group_ = 100'000;
};

TEST_F(DaemonTenants, AFloodOfHalfOpenJoinsWithValidTokensKeepsNoOtherTenantOut) {
  DaemonProcess& root = start("tenant_half_open_max: 20\n");
  const auto all = flood(root, "flooder", 200);
  ASSERT_TRUE(run_until([&] { return refused(all) == 180; })) << refused(all);
  expect_runs(root, "small");
  const auto one = std::ranges::find_if(all, [](const Child* child) { return child->refused.has_value(); });
  EXPECT_THAT((*one)->refused.value_or(""),
              HasSubstr("tenant 'flooder' has 20 connections whose lanes are not ready yet, the most that this "
                        "aggregator allows (tenant_half_open_max); the group goes on without it"));
  EXPECT_EQ(root.metric("connections_rejected_total", "over_limit"), 180);
  EXPECT_EQ(root.metric("tenant_joins_refused_total", "half_open"), 180);
  EXPECT_EQ(root.metric("joins_half_open"), 20);
  for (Child* child : all) child->close();
  EXPECT_TRUE(eventually([&] { return root.metric("joins_half_open") == 0 && root.metric("tenants") == 0; }));
  expect_runs(root, "flooder");
}

TEST_F(DaemonTenants, AFloodOfJoinsIsHeldToTheRateOfItsTenant) {
  DaemonProcess& root = start("tenant_joins_per_second_max: 10\n");
  const auto all = flood(root, "flooder", 300);
  ASSERT_TRUE(run_until([&] { return root.metric("tenant_joins_refused_total", "joins_per_second") > 100; }));
  expect_runs(root, "small");
}

// Prints what a flood of joins costs the joins of another tenant from the same address.
TEST_F(DaemonTenants, AFloodOfJoinsAsFastAsTheyGoDelaysAnotherTenantsLanesForLessThanASecond) {
  constexpr int kStarts = 100;
  const auto in_ms = [](std::chrono::microseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  DaemonProcess& root = start("");
  const auto alone = start_times(root, "small", kStarts);
  const auto flooding = flood_process(root, "flooder");
  ASSERT_TRUE(run_until([&] { return root.metric("connections_accepted_total") > 2 * kStarts + 2000; }));
  const double before = root.metric("connections_accepted_total");
  const auto begin = std::chrono::steady_clock::now();
  const auto beside = start_times(root, "small", kStarts);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const double joins = root.metric("connections_accepted_total") - before - 2 * kStarts;
  EXPECT_TRUE(flooding->running()) << flooding->output();
  std::printf(
      "a lane of two ranks starts within %.1f ms (p50) and %.1f ms (p98); beside %.0f joins a second of another tenant "
      "within %.1f ms and %.1f ms\n",
      in_ms(alone[kStarts / 2]), in_ms(alone[kStarts - 2]), joins / seconds.count(), in_ms(beside[kStarts / 2]),
      in_ms(beside[kStarts - 2]));
  EXPECT_LT(in_ms(beside[kStarts / 2]), 1000);
}

TEST_F(DaemonTenants, ConnectionsOfOneTenantLeaveRoomForAnother) {
  DaemonProcess& root = start("tenant_connections_max: 2\n");
  ++epoch_;
  std::vector<Child*> ranks;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    ranks.push_back(&child(root.endpoint(), join_of_tenant("flooder", 7, rank, 2)));
  }
  ASSERT_TRUE(run_until([&] { return ranks[0]->ready && ranks[1]->ready; }));
  const auto more = flood(root, "flooder", 3);
  ASSERT_TRUE(run_until([&] { return refused(more) == 3; }));
  EXPECT_EQ(root.metric("tenant_joins_refused_total", "connections"), 3);
  expect_runs(root, "small");
}

TEST_F(DaemonTenants, ATenantReachesNoLaneOfAnotherWithItsOwnTokens) {
  DaemonProcess& root = start("");
  ++epoch_;
  std::vector<Child*> ranks;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    ranks.push_back(&child(root.endpoint(), join_of_tenant("chemistry", kGroup, rank, 2)));
  }
  ASSERT_TRUE(run_until([&] { return ranks[0]->ready && ranks[1]->ready; }));
  ranks[0]->contribute(0, kSum, bytes_of(floats(0, 16)));

  // A join with a token of its own, in a frame that names the other tenant's group; then tokens that it has changed.
  Child& lost = child(root.endpoint(), {});
  FrameHeader join;
  join.type = FrameType::join;
  join.group = kGroup;
  lost.send(join, join_of_tenant("physics", kGroup + 1, 0, 2));
  const auto is_in_its_own_lane = [&] {
    const auto lanes = root.lanes();
    return std::ranges::any_of(
        lanes, [](const auto& lane) { return lane["group"] == kGroup + 1 && lane["tenant"] == "physics"; });
  };
  EXPECT_TRUE(run_until(is_in_its_own_lane)) << "the token counts, whatever the frame says";
  Bytes changed = join_of_tenant("physics", kGroup + 1, 0, 2);
  const auto begin = changed.begin() + static_cast<std::ptrdiff_t>(changed.size() / 4);
  for (auto at = begin; at < begin + 40; ++at) {
    *at ^= std::byte{1};
    Child& forger = child(root.endpoint(), changed);
    EXPECT_TRUE(run_until([&] { return forger.refused || forger.closed; }));
    *at ^= std::byte{1};
  }
  // Frames of all types for the other tenant's lane, from a child that has joined a lane of its own.
  for (int type = 0; type <= 32; ++type) {
    Child& joined = child(root.endpoint(), join_of_tenant("physics", kGroup + 2 + static_cast<unsigned>(type), 0, 1));
    ASSERT_TRUE(run_until([&] { return joined.ready; })) << joined.refused.value_or("");
    FrameHeader frame;
    frame.type = static_cast<FrameType>(type);
    frame.group = kGroup;
    frame.epoch = epoch_;
    frame.flags = frame_flags::kWantsResult;
    frame.set_signature(kSum);
    joined.send(frame, bytes_of(floats(7, 16)));
    joined.leave();
  }
  EXPECT_FALSE(ranks[0]->closed || ranks[1]->closed || ranks[0]->failed || !ranks[0]->results.empty());
  ranks[1]->contribute(0, kSum, bytes_of(floats(1, 16)));
  ASSERT_TRUE(run_until([&] { return ranks[0]->results.size() == 1 && ranks[1]->results.size() == 1; }));
  EXPECT_EQ(ranks[0]->results[0].payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
  EXPECT_FALSE(ranks[0]->closed || ranks[1]->closed || ranks[0]->failed || ranks[1]->failed);
}

TEST_F(DaemonTenants, TokensWithoutATenantAreServedAndCountTogether) {
  DaemonProcess& root = start("tenant_half_open_max: 4\n");
  const auto all = flood(root, "", 10);
  ASSERT_TRUE(run_until([&] { return refused(all) == 6; }));
  EXPECT_EQ(root.metric("tenants"), 1);
  expect_runs(root, "small");
}

}  // namespace
}  // namespace tributary::aggregator::test
