// A running aggregator serves its groups over TCP.
#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/system/aggregator/daemon_rig.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

class DaemonServes : public DaemonTest {};

TEST_F(DaemonServes, AnAllreduceAndCountsIt) {
  const DaemonProcess& root = aggregator("root", {"--workers", "3"});
  const auto ranks = lane_of(root, 4);
  std::vector<std::vector<float>> inputs;
  for (std::uint32_t rank = 0; rank < 4; ++rank) inputs.push_back(floats(rank, 16));
  for (std::uint32_t rank = 0; rank < 4; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(inputs[rank]));
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, [](Child* c) { return c->results.size() == 1; }); }));
  for (const Child* rank : ranks) EXPECT_EQ(rank->results[0].payload, bytes_of(sum_of(inputs)));

  EXPECT_EQ(root.metric("contributions_total"), 4);
  EXPECT_EQ(root.metric("contribution_bytes_total"), 4 * 64);
  EXPECT_EQ(root.metric("segments_completed_total"), 1);
  EXPECT_EQ(root.metric("connections_joined_total"), 4);
  EXPECT_EQ(root.metric("sessions_open"), 4);
  EXPECT_EQ(root.metric("memory_reserved_bytes"), 5.0 * kWindow * kSegmentBytes);
  const auto lanes = root.lanes();
  ASSERT_EQ(lanes.size(), 1U);
  EXPECT_EQ(lanes[0].at("group"), kGroup);
  EXPECT_EQ(lanes[0].at("job"), "training");
  EXPECT_EQ(lanes[0].at("ready"), true);
  EXPECT_EQ(lanes[0].at("segments_completed"), 1);
  EXPECT_TRUE(eventually([&] {
    const auto load = manager_.last_load_of("root");
    return !load.is_null() && load.at("lanes_active") == 1 && load.at("sessions") == 4 &&
           load.at("memory_in_use_bytes") > 0;
  })) << "the lease's renewals tell the load";
}

TEST_F(DaemonServes, ATreeOfThreeProcesses) {
  const DaemonProcess &left = aggregator("left"), &right = aggregator("right"), &root = aggregator("root");
  ++epoch_;
  std::vector<Child*> ranks;
  std::vector<std::vector<float>> inputs;
  for (std::uint16_t rank = 0; rank < 6; ++rank) {
    const auto side = static_cast<std::uint16_t>(rank / 3);
    const DaemonProcess& leaf = side == 0 ? left : right;
    TokenClaims own = claims_of(leaf.name, rank % 3, 3);
    own.rank = rank;
    own.ranks = 6;
    own.root = false;
    own.parent_host = "127.0.0.1";
    own.parent_port = root.data_port;
    TokenClaims above = claims_of("root", side, 2);
    above.kind = ChildKind::aggregator;
    above.rank = side * 3U;
    above.ranks = 6;
    ranks.push_back(&child(leaf.endpoint(), join_of({own, above})));
    inputs.push_back(floats(rank, 256));
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(ranks, &Child::ready); }));
  Signature sum = kSum;
  sum.count = 256;
  for (std::uint64_t sequence = 0; sequence < 40; ++sequence) {
    for (std::uint32_t rank = 0; rank < 6; ++rank) ranks[rank]->contribute(sequence, sum, bytes_of(inputs[rank]));
    ASSERT_TRUE(run_until(
        [&] { return std::ranges::all_of(ranks, [&](Child* c) { return c->results.size() == sequence + 1; }); }));
  }
  const auto expected =
      bytes_of(sum_of({sum_of({inputs[0], inputs[1], inputs[2]}), sum_of({inputs[3], inputs[4], inputs[5]})}));
  for (const Child* rank : ranks) EXPECT_EQ(rank->results.back().payload, expected);
}

TEST_F(DaemonServes, ManyLanesOnAllWorkers) {
  const DaemonProcess& root = aggregator("root", {"--workers", "4"});
  std::vector<Child*> all;
  for (std::uint8_t lane = 0; lane < 8; ++lane) {
    for (std::uint16_t rank = 0; rank < 2; ++rank) {
      TokenClaims claims = claims_of("root", rank, 2);
      claims.lane = lane;
      all.push_back(&child(root.endpoint(), join_of({claims})));
    }
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(all, &Child::ready); }));
  for (int worker = 0; worker < 4; ++worker) {
    EXPECT_EQ(root.metric("lanes_active", "worker=\"" + std::to_string(worker) + "\""), 2)
        << "the lanes of one group go to different workers";
  }
}

TEST_F(DaemonServes, NoChildWithoutAValidToken) {
  const DaemonProcess& root = aggregator("root");
  const auto refusal = [&](const Bytes& join) {
    Child& stranger = child(root.endpoint(), join);
    EXPECT_TRUE(run_until([&] { return stranger.closed.has_value(); }));
    return stranger.refused.value_or("(none)");
  };
  EXPECT_THAT(refusal(join_of({claims_of("elsewhere", 0, 1)})), HasSubstr("is for aggregator 'elsewhere'"));
  Bytes forged = join_of({claims_of("root", 0, 1)});
  forged[100] ^= std::byte{1};
  EXPECT_THAT(refusal(forged), HasSubstr("not signed by this cluster's manager"));
  TokenClaims old = claims_of("root", 0, 1);
  old.expires_at -= 121;
  EXPECT_THAT(refusal(join_of({old})), HasSubstr("expired"));
  EXPECT_THAT(refusal(Bytes(17)), HasSubstr("token chain"));
  lane_of(root, 2);
  EXPECT_THAT(refusal(join_of({claims_of("root", 1, 2)})), HasSubstr("has joined already"));
  EXPECT_EQ(root.metric("connections_rejected_total", "denied"), 3);
  EXPECT_EQ(root.metric("joins_refused_total"), 1);
}

TEST_F(DaemonServes, ALaneThatDoesNotFitIsRefusedWithTheNumbers) {
  const DaemonProcess& root = aggregator("root", {"--memory", "1MiB"});
  TokenClaims large = claims_of("root", 0, 2);
  large.window = 256;
  large.segment_bytes = 1U << 20;
  Child& rank = child(root.endpoint(), join_of({large}));
  ASSERT_TRUE(run_until([&] { return rank.refused.has_value(); }));
  EXPECT_THAT(*rank.refused, HasSubstr("aggregator root has 1048576 of 1048576 bytes left; this lane needs 805306368"));
}

TEST_F(DaemonServes, GivesBackAllThatAGroupHeldWhenItsProcessesAreKilled) {
  DaemonProcess& root = aggregator("root");
  expect_serves(root);
  ASSERT_TRUE(eventually([&] { return root.memory_reserved() == 0 && root.metric("sessions_open") == 0; }));
  const std::size_t files_before = root.process.open_files();
  for (int round = 0; round < 3; ++round) {
    ++epoch_;
    const auto zero = rank_process(root, 0, 3);
    const auto one = rank_process(root, 1, 3);
    const auto two = rank_process(root, 2, 3);
    const double before = root.metric("segments_completed_total");
    ASSERT_TRUE(eventually([&] { return root.metric("segments_completed_total") > before + 100; })) << zero->output();
    EXPECT_GT(root.memory_reserved(), 0U);
    for (const auto* rank : {&zero, &one, &two}) (*rank)->signal(SIGKILL);
    EXPECT_TRUE(eventually([&] { return root.memory_reserved() == 0; }));
    EXPECT_TRUE(eventually([&] { return root.process.open_files() <= files_before; }))
        << root.process.open_files() << " of " << files_before;
  }
  EXPECT_TRUE(root.lanes().empty());
  expect_serves(root);
}

TEST_F(DaemonServes, AKilledRankFailsTheLaneAndTheOthersLearnItsName) {
  const DaemonProcess& root = aggregator("root");
  ++epoch_;
  const auto killed = rank_process(root, 0, 2);
  Child& other = child(root.endpoint(), join_of({claims_of("root", 1, 2)}));
  ASSERT_TRUE(run_until([&] { return other.ready; })) << killed->output();
  killed->signal(SIGKILL);
  ASSERT_TRUE(run_until([&] { return other.failed.has_value(); }));
  EXPECT_THAT(*other.failed, HasSubstr("rank 0 is gone from lane 0 of group 4711"));
}

TEST_F(DaemonServes, AKilledAggregatorIsABrokenConnectionAndItsAddressIsFreeAgainAtOnce) {
  DaemonProcess& root = aggregator("root");
  const std::uint16_t port = root.data_port;
  const auto ranks = lane_of(root, 2);
  root.process.signal(SIGKILL);
  EXPECT_TRUE(run_until([&] { return ranks[0]->closed && ranks[1]->closed; }));
  std::vector<std::string> again = {"--manager", manager_.url(), "--listen", "127.0.0.1:" + std::to_string(port),
                                    "--http",    "127.0.0.1:0"};
  DaemonProcess restarted(folder_, "root", again);
  ASSERT_EQ(restarted.data_port, port) << restarted.process.output();
  ASSERT_TRUE(eventually([&] { return restarted.takes_joins(); }));
  expect_serves(restarted);
}

TEST_F(DaemonServes, HttpAnswersWithinItsLimits) {
  DaemonProcess& root = aggregator("root", {"--config", folder_.write("a.yaml", "http_connections_max: 32\n")});
  EXPECT_EQ(http_get(root.http_port, "/healthz").status, 200U);
  EXPECT_EQ(http_get(root.http_port, "/metrics?x=y").status, 200U);
  EXPECT_EQ(http_get(root.http_port, "/nothing").status, 404U);
  EXPECT_EQ(http_get(root.http_port, "/" + std::string(20'000, 'x')).status, 431U);
  const auto answer_to = [&](const std::string& request) {
    const RawSocket socket(root.http_port);
    socket.send(request);
    return socket.read_to_end();
  };
  EXPECT_THAT(answer_to("POST /metrics HTTP/1.1\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"),
              HasSubstr("405 Method Not Allowed"));
  EXPECT_THAT(answer_to("POST /metrics HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n"), HasSubstr("405 "));
  EXPECT_THAT(answer_to("HEAD /healthz HTTP/1.1\r\nConnection: close\r\n\r\n"),
              ::testing::Not(HasSubstr("takes_joins")));
  EXPECT_THAT(answer_to("rubbish\r\n\r\n"), HasSubstr("400 Bad Request"));
  EXPECT_EQ(answer_to("GET /healthz HTT"), "") << "a connection with half a request is closed after its limit";

  raise_descriptor_limit();
  std::vector<RawSocket> silent;
  for (int i = 0; i < 1100; ++i) {
    silent.emplace_back(root.http_port);
    if (i % 100 != 99) continue;
    ASSERT_EQ(http_get(root.http_port, "/healthz").status, 200U) << "after " << i + 1;
  }
  EXPECT_TRUE(eventually([&] { return root.process.open_files() < 80; })) << "the oldest connections are closed";
  EXPECT_GE(root.metric("http_connections_displaced_total"), 1000);
}

}  // namespace
}  // namespace tributary::aggregator::test
