#include "aggregator/daemon/status.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/unit/service_kit/metrics_document.h"

namespace tributary::aggregator {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

DaemonStatus two_workers() {
  DaemonStatus status{.name = "leaf-1",
                      .version = "1.2.3",
                      .host_id = "node-1",
                      .workers_total = 2,
                      .memory_bytes_max = 1000,
                      .memory_bytes_reserved = 300,
                      .has_key = true};
  status.listen = {{{"10.0.0.1", 7471}, true, ""}, {{"10.1.0.1", 7471}, false, "port 1 of mlx5_1 is in state down"}};
  status.workers.resize(2);
  status.workers[1].metrics.contributions = 42;
  status.workers[1].metrics.lanes_active = 1;
  status.workers[1].sessions = 3;
  status.workers[1].lanes.push_back({.group = 7,
                                     .epoch = 2,
                                     .lane = 1,
                                     .job = "train\xff",
                                     .children = 3,
                                     .joined = 3,
                                     .ready = true,
                                     .root = true,
                                     .segments_completed = 9,
                                     .memory_bytes = 300});
  return status;
}

TEST(Status, MetricsHaveTheReasonsOfTheDoorAndOfAllWorkers) {
  DaemonStatus status = two_workers();
  status.front_door.reasons.add(Reason::join_late, 2);
  for (auto& worker : status.workers) worker.metrics.reasons.add(Reason::no_memory);
  const std::string text = metrics_page(status).text();
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_reasons_total{code=\"join-late\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_reasons_total{code=\"no-memory\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("code=\"draining\""))) << "only what has arisen";
}

TEST(Status, MetricsCarryTheWorkerAndTheAgreedNames) {
  const std::string text = metrics_page(two_workers()).text();
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_contributions_total{worker=\"0\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_contributions_total{worker=\"1\"} 42\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE tributary_aggregator_contributions_total counter\n"));
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_memory_reserved_bytes 300\n"));
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_info{name=\"leaf-1\",version=\"1.2.3\",host_id=\"node-1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_listen_live{at=\"10.1.0.1:7471\"} 0\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_THAT(line.substr(0, line.starts_with('#') ? 30 : 21), HasSubstr("tributary_aggregator_"));
  }
}

TEST(Status, MetricsCountDroppedPacketsByReason) {
  DaemonStatus status = two_workers();
  transport::UdpStatistics& udp = status.workers[1].udp;
  udp.cookies_wrong = 11;
  udp.resets_sent = 12;
  udp.resets_received = 13;
  udp.refused_full = 14;
  udp.displaced = 15;
  udp.joined_sent = 16;
  udp.joined_received = 17;
  udp.joined_refused = 18;
  udp.rejected_parts[5] = {"checksum", 19};
  udp.frames_rejected[0] = {"magic", 20};
  udp.unsent[1] = {"too_long", 21};
  status.workers[1].metrics.sessions_displaced = 22;
  transport::DpdkStatistics& dpdk = status.workers[1].dpdk;
  dpdk.cookies_wrong = 23;
  dpdk.frames_in_place = 24;
  dpdk.frames_foreign = 25;
  dpdk.rejected_parts[5] = {"checksum", 26};
  const std::string text = metrics_page(status).text();
  for (const auto& [name, value] : {std::pair{"udp_cookies_wrong_total", 11},
                                    {"udp_resets_sent_total", 12},
                                    {"udp_resets_received_total", 13},
                                    {"udp_refused_full_total", 14},
                                    {"udp_displaced_total", 15},
                                    {"udp_joined_sent_packets_total", 16},
                                    {"udp_joined_received_packets_total", 17},
                                    {"udp_joined_refused_packets_total", 18},
                                    {"sessions_displaced_total", 22},
                                    {"dpdk_cookies_wrong_total", 23},
                                    {"dpdk_frames_in_place_total", 24},
                                    {"dpdk_frames_foreign_total", 25}}) {
    const std::string line = std::string("tributary_aggregator_") + name + "{worker=\"1\"} " + std::to_string(value);
    EXPECT_THAT(text, HasSubstr(line + "\n"));
  }
  for (const char* line : {"udp_packets_rejected_total{worker=\"1\",reason=\"checksum\"} 19\n",
                           "udp_frames_rejected_total{worker=\"1\",reason=\"magic\"} 20\n",
                           "udp_packets_unsent_total{worker=\"1\",reason=\"too_long\"} 21\n",
                           "dpdk_packets_rejected_total{worker=\"1\",reason=\"checksum\"} 26\n"}) {
    EXPECT_THAT(text, HasSubstr(std::string("tributary_aggregator_") + line));
  }
}

TEST(Status, MetricsOfTransportsThatAreNotInUseAreLeftOut) {
  DaemonStatus status = two_workers();
  status.shown = {.udp = false, .verbs = true, .dpdk = false};
  const std::string text = metrics_page(status).text();
  EXPECT_THAT(text, HasSubstr("tributary_aggregator_rdma_queue_pairs{"));
  EXPECT_THAT(text, Not(HasSubstr("tributary_aggregator_udp_")));
  EXPECT_THAT(text, Not(HasSubstr("tributary_aggregator_dpdk_")));
  status.shown = {.udp = true, .verbs = false, .dpdk = false};
  EXPECT_THAT(metrics_page(status).text(), HasSubstr("tributary_aggregator_udp_timeouts_total{"));
  EXPECT_THAT(metrics_page(status).text(), Not(HasSubstr("tributary_aggregator_rdma_")));
}

TEST(Status, MetricsAreThoseOfTheDocument) {
  DaemonStatus status = two_workers();
  status.manager.last_answer = status.now;  // the page shows the age of an answer only after there was an answer
  service::expect_documented(metrics_page(status), TRIBUTARY_METRICS_DOCUMENT);
}

TEST(Status, LanesAreJsonWhateverTheJobIsCalled) {
  const json lanes = json::parse(lanes_json(two_workers())).at("lanes");
  ASSERT_EQ(lanes.size(), 1U);
  EXPECT_EQ(lanes[0].at("group"), 7);
  EXPECT_EQ(lanes[0].at("worker"), 1);
  EXPECT_EQ(lanes[0].at("ready"), true);
  EXPECT_EQ(lanes[0].at("memory_bytes"), 300);
}

TEST(Status, HealthSaysWhetherJoinsAreAcceptedAndTheReasonIfNot) {
  DaemonStatus status = two_workers();
  json health = json::parse(health_json(status));
  EXPECT_EQ(health.at("status"), "ok");
  EXPECT_EQ(health.at("takes_joins"), true);
  EXPECT_EQ(health.at("sessions"), 3);
  EXPECT_EQ(health.at("listen")[1].at("live"), false);
  EXPECT_EQ(health.at("listen")[1].at("reason"), "port 1 of mlx5_1 is in state down");

  status.has_key = false;
  health = json::parse(health_json(status));
  EXPECT_EQ(health.at("status"), "ok") << "an absent manager is no illness of this process";
  EXPECT_EQ(health.at("takes_joins"), false);

  status.draining = "it shuts down";
  health = json::parse(health_json(status));
  EXPECT_EQ(health.at("status"), "draining");
  EXPECT_EQ(health.at("reason"), "it shuts down");

  EXPECT_TRUE(healthy(status));
  status.stuck = {"worker 1"};
  EXPECT_FALSE(healthy(status));
  EXPECT_EQ(json::parse(health_json(status)).at("status"), "stuck");
}

}  // namespace
}  // namespace tributary::aggregator
