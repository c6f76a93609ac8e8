// Rules that hold at every time: which operations run at the same time, and which rank the error names when rank 0
// itself hangs.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/simulation/cluster/blame.h"
#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;

constexpr Signature kOne{Collective::all_reduce, DType::float32, ReduceOp::sum, 0, 16};

/// Every second operation runs between the ranks, over slow links, so that the next operation has to wait.
TEST(Rules, NoOperationUsesTheTreeWhileAnotherRunsBetweenTheRanks) {
  Cluster cluster({.seed = 11, .aggregators = 1});
  cluster.manager().levels = 1;
  constexpr std::uint32_t kCalls = 120;
  cluster.add_group(3, 1, {.calls = kCalls});
  auto& ranks = cluster.groups()[0];
  for (auto& rank : ranks) {
    for (std::size_t i = 0; i < kCalls; ++i)
      rank->other_calls[i] = {
          i % 2 == 0 ? kOne : Signature{Collective::all_to_all, DType::float32, ReduceOp::sum, 0, 16}, false};
    for (auto& other : ranks) {
      if (&other != &rank) cluster.network().set_link(rank->host(), other->host(), {.latency = 2ms, .jitter = 1ms});
    }
  }
  std::uint64_t met = 0;
  const auto all_done = [&] {
    bool done = true;
    for (auto& rank : ranks) {
      done = done && rank->done();
      const auto lanes = rank->communicator().lane_positions();
      if (lanes.empty() || rank->completed() % 2 == 0) continue;
      // The first operation that has not ended runs between the ranks.
      ++met;
      if (lanes[0].contributed != lanes[0].prefix)
        cluster.violation(rank->host() + ": operation " + std::to_string(rank->completed() + 1) +
                          " has begun on the tree before the one that goes between the ranks has ended");
    }
    return done || !cluster.violations().empty();
  };
  ASSERT_TRUE(cluster.network().run_until(all_done, cluster.network().now() + 60s)) << cluster.describe();
  EXPECT_TRUE(cluster.violations().empty()) << cluster.describe();
  for (auto& rank : ranks) EXPECT_FALSE(rank->failure()) << cluster.describe();
  EXPECT_GT(met, 1000U) << "the run did not reach the situation under test";
}

/// No rank tells the other ranks: each rank detects this by itself, within its time-out.
TEST(Rules, ARankZeroThatHangsIsNamedByEveryOtherWithinTheTimeOut) {
  for (const bool trees : {false, true}) {
    for (const bool finalizing : {false, true}) {
      SCOPED_TRACE(std::string(trees ? "with" : "without") + " trees, " +
                   (finalizing ? "at the end" : "in an operation"));
      Cluster cluster({.seed = 12});
      cluster.manager().reachable = trees;
      cluster.add_group(4, 1, {.calls = 200, .direct = false});
      auto& ranks = cluster.groups()[0];
      auto& network = cluster.network();
      const std::uint64_t ended = finalizing ? 200 : 60;
      ASSERT_TRUE(network.run_until([&] { return ranks[0]->completed() == ended; }, network.now() + 60s));
      network.pause(ranks[0]->host());
      const auto hangs_at = network.now();
      const auto told = [&] { return ranks[1]->failure() && ranks[2]->failure() && ranks[3]->failure(); };
      // At the end rank 0 would name the ranks that do not come, so its limit is longer by a twentieth. Half a second
      // is left for the last steps between the ranks, and for the tick that checks the limit.
      const auto limit = cluster.settings().timeout * (finalizing ? 21 : 20) / 20;
      ASSERT_TRUE(network.run_until(told, hangs_at + limit + 500ms)) << cluster.describe();
      for (std::size_t r = 1; r < ranks.size(); ++r) {
        EXPECT_EQ(ranks[r]->failure()->code, Errc::timed_out);
        EXPECT_NE(ranks[r]->failure()->message.find("rank 0 on host g0r0: no answer"), std::string::npos)
            << ranks[r]->failure()->message;
      }
    }
  }
}

/// Rank 0 goes on after the other ranks have given it up at different times, and learns that they are gone. No rank may
/// blame one of these ranks.
TEST(Rules, ARankZeroThatStoodStillForTooLongIsTheOnlyOneBlamed) {
  std::uint64_t said_itself = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Cluster cluster({.seed = seed});
    cluster.manager().reachable = seed % 2 == 0;
    cluster.add_group(5, 1, {.calls = 400, .direct = false});
    auto& ranks = cluster.groups()[0];
    for (auto& rank : ranks) rank->think_max = 3ms;
    auto& network = cluster.network();
    network.run_for(5ms * seed);
    network.pause(ranks[0]->host());
    network.call_at(network.now() + cluster.settings().timeout + 12ms * seed, [&] { network.resume("g0r0"); });
    ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
    for (auto& rank : ranks) {
      ASSERT_TRUE(rank->failure()) << cluster.describe();
      EXPECT_EQ(blamed(rank->failure()->message), std::vector<std::uint32_t>{0}) << rank->failure()->message;
      said_itself += rank->failure()->message.contains("rank 0 on host g0r0 stood still for 20") ? 1U : 0U;
    }
  }
  EXPECT_GT(said_itself, 20U) << "the run did not reach the situation under test";
}

/// The rank stands still for longer than a listener waits for a proof. When it goes on, it treats the connection as
/// made.
TEST(Rules, ARankThatStandsStillWhileRanksConnectCostsNoError) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ClusterSettings settings{.seed = seed};
    settings.network.link = {.latency = 50us, .jitter = 20us};
    Cluster cluster(settings);
    cluster.manager().reachable = false;
    cluster.add_group(5, 1, {.calls = 10, .direct = false});
    auto& network = cluster.network();
    auto& ranks = cluster.groups()[0];
    ASSERT_TRUE(network.run_until([&] { return ranks[4]->communicator().ready(); }, network.now() + 10s));
    network.run_for(10us * seed);
    network.pause(ranks[4]->host());
    network.run_for(8s);
    network.resume(ranks[4]->host());
    ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
    for (auto& rank : ranks) EXPECT_FALSE(rank->failure()) << cluster.describe();
  }
}

/// Rank 0 has told all ranks why it gives up; a rank that stood still at that time has missed the message.
TEST(Rules, ARankThatComesBackTooLateToMeetGetsTheSameErrorAsTheOthers) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Cluster cluster({.seed = seed});
    cluster.manager().reachable = false;
    cluster.add_group(9, 1, {.calls = 5});
    auto& network = cluster.network();
    auto& ranks = cluster.groups()[0];
    ranks[2]->kill();
    network.call_at(network.now() + 19s, [&] { network.pause("g0r3"); });
    network.call_at(network.now() + 40s, [&] { network.resume("g0r3"); });
    ASSERT_TRUE(cluster.run(120s)) << cluster.describe();
    for (auto& rank : ranks) {
      if (!rank->alive()) continue;
      ASSERT_TRUE(rank->failure()) << cluster.describe();
      EXPECT_NE(rank->failure()->message.find("these ranks did not come: rank 2"), std::string::npos)
          << rank->failure()->message;
    }
  }
}

/// Rank 0 stands still while other ranks come, and then gives up. It must not say that these ranks did not come.
TEST(Rules, ARankThatStoodStillWhileTheRanksMetSaysSo) {
  for (const std::uint32_t still : {0U, 2U}) {
    Cluster cluster({.seed = 5});
    cluster.add_group(3, 1, {.calls = 5});
    auto& network = cluster.network();
    const std::string host = "g0r" + std::to_string(still);
    network.pause(host);
    network.call_at(network.now() + 30s, [&] { network.resume(host); });
    ASSERT_TRUE(cluster.run(120s)) << cluster.describe();
    const auto& failure = cluster.groups()[0][still]->failure();
    ASSERT_TRUE(failure) << cluster.describe();
    EXPECT_EQ(blamed(failure->message), std::vector<std::uint32_t>{still}) << failure->message;
  }
}

/// Rank 0 finds when it goes on that all ranks have come, and that one of them has given up meanwhile.
TEST(Rules, ARankZeroThatStoodStillWhileTheRanksMetBlamesNoRankThatGaveUp) {
  std::uint64_t said_itself = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ClusterSettings settings{.seed = seed};
    settings.network.link = {.latency = 50us, .jitter = 20us};
    Cluster cluster(settings);
    cluster.add_group(3, 1, {.calls = 5});
    auto& network = cluster.network();
    network.run_for(10us * seed);
    network.pause("g0r0");
    network.call_at(network.now() + 21'300ms, [&] { network.resume("g0r0"); });
    ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
    for (auto& rank : cluster.groups()[0]) {
      if (!rank->failure()) continue;
      EXPECT_EQ(blamed(rank->failure()->message), std::vector<std::uint32_t>{0}) << rank->failure()->message;
      said_itself += rank->failure()->message.contains("is gone: ") &&
                             rank->failure()->message.contains("rank 0 on host g0r0 stood still for 21")
                         ? 1U
                         : 0U;
    }
  }
  EXPECT_GT(said_itself, 5U) << "the run did not reach the situation under test";
}

TEST(Rules, ARankThatCannotReachAnotherSaysSoAndWhy) {
  Cluster cluster({.seed = 5});
  cluster.manager().reachable = false;
  cluster.add_group(3, 1, {.calls = 5, .only = Collective::all_reduce});
  auto& ranks = cluster.groups()[0];
  cluster.network().refuse_connections("g0r1", 100);
  ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
  ASSERT_TRUE(ranks[2]->failure()) << cluster.describe();
  EXPECT_NE(ranks[2]->failure()->message.find("(the connection to rank 1 failed "), std::string::npos)
      << ranks[2]->failure()->message;
}

/// Rank 0 refuses connections, and then every process stands still for a long time. A rank first reads the refusal when
/// it goes on, and at this time its clock says that the time-out is over.
TEST(Rules, ARefusedConnectionIsTriedAgainAfterAllHaveStoodStillForLong) {
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {  // an attempt takes 0.2 s, and the next one begins a second later
    ClusterSettings settings{.seed = seed};
    settings.network.link.latency = 100ms;
    Cluster cluster(settings);
    cluster.add_group(3, 1, {.calls = 5});
    auto& network = cluster.network();
    network.refuse_connections("g0r0", 100);
    network.run_for(9s + 90ms * seed);
    for (auto& rank : cluster.groups()[0]) network.pause(rank->host());
    network.run_for(1s);
    network.refuse_connections("g0r0", 0);
    network.run_for(29s);
    for (auto& rank : cluster.groups()[0]) network.resume(rank->host());
    ASSERT_TRUE(cluster.run(60s)) << cluster.describe();
    for (auto& rank : cluster.groups()[0]) EXPECT_FALSE(rank->failure()) << cluster.describe();
  }
}

}  // namespace
}  // namespace tributary::simulation
