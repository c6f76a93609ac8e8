// If a rank's network device fails in mid-operation and its host lives on, the ranks get the same bits, and no error.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;

void expect_right(Cluster& cluster, const std::string& which) {
  ASSERT_TRUE(cluster.run(120s)) << which << "\n" << cluster.describe();
  ASSERT_TRUE(cluster.violations().empty()) << which << "\n" << cluster.describe();
  for (auto& rank : cluster.groups()[0]) ASSERT_FALSE(rank->failure()) << which << "\n" << cluster.describe();
}

ClusterSettings settings_of(std::uint64_t seed, client::PathMode path) {
  ClusterSettings settings{.seed = seed, .devices = true, .path = path};
  settings.network.split_percent = 70;
  settings.network.link.jitter = 40us;
  settings.network.early_sent_percent = static_cast<std::uint32_t>(seed % 4 * 30);
  return settings;
}

TEST(Devices, AreUsedUntilTheyAreGone) {
  Cluster cluster(settings_of(1, client::PathMode::fallback));
  cluster.add_group(4, 1, {.calls = 30});
  expect_right(cluster, "");
  const auto before = cluster.network().statistics();
  EXPECT_GT(before.frames, 0U);
  for (auto& rank : cluster.groups()[0]) EXPECT_TRUE(rank->has_device());
}

// Repeat one run; each time the device fails one event later, between frames and within frames.
TEST(Devices, FailAfterEveryEventOfARunWithoutTrees) {
  constexpr std::uint32_t ranks = 3;
  const auto live = [](std::uint64_t after, std::uint32_t whose, bool& ended_before) {
    Cluster cluster(settings_of(3, client::PathMode::fallback));
    cluster.add_group(ranks, 1, {.calls = 6, .count_max = 600});
    std::uint64_t steps = 0;
    bool done = false;
    while (steps < after && !done) {
      done = !cluster.network().step();
      ++steps;
      done = done || std::ranges::all_of(cluster.groups()[0], [](const auto& r) { return r->done(); });
    }
    ended_before = done;
    cluster.groups()[0][whose]->lose_device(after % 2 == 0);
    expect_right(cluster,
                 "rank " + std::to_string(whose) + "'s device goes after " + std::to_string(after) + " events");
  };
  for (std::uint32_t whose = 0; whose < ranks; ++whose) {
    bool ended = false;
    for (std::uint64_t after = 0; !ended; after += 1) {
      live(after, whose, ended);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Devices, FailInRunsWithTreesAndWithout) {
  std::uint64_t failovers = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Cluster cluster(settings_of(seed, seed % 2 == 0 ? client::PathMode::fallback : client::PathMode::automatic));
    const auto nranks = static_cast<std::uint32_t>(2 + cluster.below(6));
    cluster.add_group(nranks, static_cast<std::uint32_t>(1 + cluster.below(3)), {.calls = 30, .count_max = 3000});
    for (auto& rank : cluster.groups()[0]) rank->outstanding_max = static_cast<std::uint32_t>(1 + cluster.below(5));
    const std::uint64_t losses = 1 + cluster.below(3);
    for (std::uint64_t i = 0; i < losses; ++i) {
      SimRank& rank = *cluster.groups()[0][cluster.below(nranks)];
      const bool silent = cluster.below(2) == 0;
      cluster.network().call_at(
          cluster.network().now() + transport::Duration(static_cast<std::int64_t>(cluster.below(20'000'000))),
          [&rank, silent] { rank.lose_device(silent); });
    }
    // Break a connection between two devices that both live, too.
    const auto a = cluster.below(nranks), b = cluster.below(nranks);
    if (a != b) {
      cluster.network().call_at(
          cluster.network().now() + transport::Duration(static_cast<std::int64_t>(cluster.below(10'000'000))),
          [&cluster, a, b] {
            cluster.network().cut(device_of(cluster.groups()[0][a]->host()), device_of(cluster.groups()[0][b]->host()));
          });
    }
    expect_right(cluster, "seed " + std::to_string(seed));
    if (::testing::Test::HasFatalFailure()) return;
    for (auto& rank : cluster.groups()[0]) failovers += rank->communicator().info().failovers;
  }
  EXPECT_GT(failovers, 0U);
}

TEST(Devices, EndTheSearchForTreesWhereARankHasNone) {
  Cluster cluster(settings_of(4, client::PathMode::automatic));
  cluster.add_group(4, 2, {.calls = 2000, .count_max = 3000});
  for (auto& rank : cluster.groups()[0]) rank->think_max = 4ms;
  cluster.network().call_at(cluster.network().now() + 20ms, [&] { cluster.groups()[0][2]->lose_device(false); });
  std::uint64_t plans_after_a_while = 0;
  cluster.network().call_at(cluster.network().now() + 1s, [&] { plans_after_a_while = cluster.manager().plans; });
  expect_right(cluster, "");
  EXPECT_GT(plans_after_a_while, 0U);
  EXPECT_EQ(cluster.manager().plans, plans_after_a_while);
  for (auto& rank : cluster.groups()[0]) {
    const auto info = rank->communicator().info();
    EXPECT_GT(info.bytes_in_network, 0U);
    EXPECT_EQ(info.failovers, 1U);
    EXPECT_NE(info.reason.find("rank 2 has no way to aggregators"), std::string::npos) << info.reason;
  }
}

// An aggregator is killed, and a device fails while the ranks move results to each other.
TEST(Devices, FailWhileATreeIsRepaired) {
  std::uint64_t failovers = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Cluster cluster(settings_of(seed, client::PathMode::automatic));
    cluster.manager().levels = 1;
    cluster.add_group(4, 2, {.calls = 60, .count_max = 8000});
    const auto at = cluster.network().now() + 3ms;
    cluster.network().call_at(at, [&] {
      for (auto& aggregator : cluster.aggregators()) aggregator->kill();
    });
    cluster.network().call_at(at + 3us * seed, [&] { cluster.groups()[0][seed % 4]->lose_device(seed % 8 >= 4); });
    expect_right(cluster, "seed " + std::to_string(seed));
    if (::testing::Test::HasFatalFailure()) return;
    for (auto& rank : cluster.groups()[0]) failovers += rank->communicator().info().failovers;
  }
  EXPECT_GT(failovers, 100U);
}

// Ranks must not mistake a lost device for a lost rank, nor a lost rank for a lost device.
TEST(Devices, FailBeforeARankIsKilledAndNamed) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Cluster cluster(settings_of(seed, client::PathMode::fallback));
    cluster.add_group(4, 1, {.calls = 300, .count_max = 3000});
    cluster.network().call_at(cluster.network().now() + 2ms,
                              [&] { cluster.groups()[0][seed % 4]->lose_device(false); });
    const std::uint64_t victim = 1 + seed % 3;
    transport::TimePoint killed_at{};
    cluster.network().call_at(cluster.network().now() + 2ms + 37us * seed, [&] {
      killed_at = cluster.network().now();
      cluster.groups()[0][victim]->kill();
    });
    ASSERT_TRUE(cluster.run(120s)) << cluster.describe();
    ASSERT_TRUE(cluster.violations().empty()) << cluster.describe();
    EXPECT_LT(cluster.network().now() - killed_at, 1s) << cluster.describe();
    for (auto& rank : cluster.groups()[0]) {
      if (!rank->alive()) continue;
      ASSERT_TRUE(rank->failure()) << "seed " << seed << "\n" << cluster.describe();
      EXPECT_NE(rank->failure()->message.find("rank " + std::to_string(victim)), std::string::npos)
          << rank->failure()->message;
    }
  }
}

}  // namespace
}  // namespace tributary::simulation
