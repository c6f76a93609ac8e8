// Limits for each tenant on the data port, on virtual time.
#include "aggregator/worker/tenant_limits.h"

#include <gmock/gmock.h>

#include <vector>

namespace tributary::aggregator {
namespace {

using ::testing::HasSubstr;
using Places = std::vector<std::shared_ptr<TenantLimits::Place>>;

constexpr std::int64_t kSecond = 1'000'000'000;

/// Joins until a join is refused, at most `most` times. Returns the reason; empty: none was refused.
std::string join_until_refused(TenantLimits& limits, const std::string& tenant, int most, Places& places,
                               std::int64_t now_ns = 0) {
  for (int i = 0; i < most; ++i) {
    auto place = limits.enter(tenant, now_ns);
    if (!place) return place.error().message;
    places.push_back(std::move(*place));
  }
  return {};
}

std::uint64_t refused(const TenantLimits& limits, TenantLimit limit) {
  return limits.counts().refused[static_cast<std::size_t>(limit)];
}

TEST(TenantLimits, BoundTheConnectionsOfOneTenantAndOfNoOther) {
  TenantLimits limits({.connections_max = 3});
  Places physics, chemistry;
  EXPECT_THAT(join_until_refused(limits, "physics", 10, physics),
              HasSubstr("tenant 'physics' has 3 connections, the most that this aggregator allows "
                        "(tenant_connections_max)"));
  EXPECT_EQ(physics.size(), 3U);
  EXPECT_EQ(join_until_refused(limits, "chemistry", 3, chemistry), "");
  EXPECT_EQ(limits.counts().tenants, 2U);
  physics.pop_back();
  EXPECT_EQ(join_until_refused(limits, "physics", 1, physics), "") << "a connection that has ended makes room";
  EXPECT_EQ(refused(limits, TenantLimit::connections), 1U);
}

TEST(TenantLimits, BoundTheJoinsWhoseLanesAreNotReady) {
  TenantLimits limits({.half_open_max = 2});
  Places places;
  EXPECT_THAT(join_until_refused(limits, "physics", 10, places), HasSubstr("tenant_half_open_max"));
  EXPECT_EQ(limits.counts().half_open, 2U);
  places[0]->ready();
  places[0]->ready();
  EXPECT_EQ(limits.counts().half_open, 1U) << "a lane is ready once";
  EXPECT_THAT(join_until_refused(limits, "physics", 10, places), HasSubstr("lanes are not ready yet"));
  EXPECT_EQ(places.size(), 3U);
  places.clear();
  EXPECT_EQ(limits.counts().half_open, 0U);
  EXPECT_EQ(limits.counts().tenants, 0U);
}

TEST(TenantLimits, BoundTheJoinsInASecond) {
  TenantLimits limits({.joins_per_second_max = 100});
  Places places;
  EXPECT_THAT(join_until_refused(limits, "physics", 1000, places),
              HasSubstr("tenant 'physics' joins more than 100 times a second"));
  EXPECT_EQ(places.size(), 200U) << "the joins of two seconds may come at once";
  places.clear();
  EXPECT_NE(join_until_refused(limits, "physics", 1, places), "") << "connections that have ended give no joins back";
  EXPECT_EQ(join_until_refused(limits, "chemistry", 200, places), "");
  places.clear();
  EXPECT_NE(join_until_refused(limits, "physics", 1000, places, kSecond / 2), "");
  EXPECT_EQ(places.size(), 50U);
  places.clear();
  EXPECT_NE(join_until_refused(limits, "physics", 1000, places, 100 * kSecond), "");
  EXPECT_EQ(places.size(), 200U) << "rest saves no more than the joins of two seconds";
}

TEST(TenantLimits, AreNotUsedUpByClaimsWithoutASignature) {
  TenantLimits limits({.connections_max = 2, .half_open_max = 2, .joins_per_second_max = 2});
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limits.check("physics", 0));
  Places places;
  EXPECT_EQ(join_until_refused(limits, "physics", 2, places), "");
  EXPECT_FALSE(limits.check("physics", 0)) << "at its limit a tenant costs no check of a signature";
  EXPECT_TRUE(limits.check("chemistry", 0));
}

TEST(TenantLimits, CountAllGroupsWithoutATenantTogether) {
  TenantLimits limits({.connections_max = 1});
  Places places;
  EXPECT_THAT(join_until_refused(limits, "", 2, places), HasSubstr("the groups without a tenant have 1 connections"));
}

TEST(TenantLimits, AreNoneWhereTheSettingIsZero) {
  TenantLimits limits({});
  Places places;
  EXPECT_EQ(join_until_refused(limits, "physics", 100'000, places), "");
  EXPECT_EQ(limits.counts().half_open, 100'000U);
}

TEST(TenantLimits, ForgetTenantsThatAreGone) {
  TenantLimits limits({.joins_per_second_max = 1});
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(limits.enter("tenant-" + std::to_string(i), i * kSecond));
  }
  EXPECT_LE(limits.remembered(), 70U);
}

}  // namespace
}  // namespace tributary::aggregator
