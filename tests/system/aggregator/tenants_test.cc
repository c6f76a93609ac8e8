// Two tenants on the data port of a real aggregator: one floods it with valid tokens, and the other's group starts and
// runs.
#include <gmock/gmock.h>

#include <algorithm>
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
  /// Starts a lane of the group of the rig in the name of the tenant, reduces one segment, and ends the lane.
  void expect_runs(const DaemonProcess& root, const std::string& tenant) {
    ++epoch_;
    std::vector<Child*> ranks;
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      ranks.push_back(&child(root.endpoint(), join_of_tenant(tenant, kGroup, rank, 2)));
    }
    ASSERT_TRUE(run_until([&] { return ranks[0]->ready && ranks[1]->ready; })) << ranks[0]->refused.value_or("");
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

TEST_F(DaemonTenants, TokensWithoutATenantAreServedAndCountTogether) {
  DaemonProcess& root = start("tenant_half_open_max: 4\n");
  const auto all = flood(root, "", 10);
  ASSERT_TRUE(run_until([&] { return refused(all) == 6; }));
  EXPECT_EQ(root.metric("tenants"), 1);
  expect_runs(root, "small");
}

}  // namespace
}  // namespace tributary::aggregator::test
