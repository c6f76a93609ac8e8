// A stranger floods the port of an aggregator that serves a group over UDP with every kind of wrong datagram. The
// aggregator counts and drops them. The group computes right results and stays on its tree; it becomes slower only
// because the flood uses the port and the core.
//
// Variables: TRIBUTARY_HOSTILE_SECONDS (2: for each measurement), TRIBUTARY_HOSTILE_RATE (20000: packets a second),
// TRIBUTARY_PACKET_SECURITY with its usual meaning.
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/system/chaos/rank_fleet.h"
#include "tests/system/chaos/workshop.h"
#include "tests/system/udp/hostile_traffic.h"
#include "tributary/manager_client/manager_client.h"

namespace tributary::hostile {
namespace {

using namespace std::chrono_literals;
using chaos::number_from_environment;

constexpr std::uint32_t kRanks = 4;
constexpr std::size_t kSeenMax = 500;

/// Packets a second. Under ThreadSanitizer an aggregator needs much longer for each packet, and the usual flood would
/// leave no time to answer the lanes' `ask` frames.
#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kRate = 4'000;
#else
constexpr std::uint64_t kRate = 20'000;
#endif

class HostileTraffic : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* transport = std::getenv("TRIBUTARY_TRANSPORT");
        transport == nullptr || std::string_view(transport) != "udp") {
      GTEST_SKIP() << "TRIBUTARY_TRANSPORT is not udp";
    }
    cluster_ = workshop_.start_cluster({.ranks = kRanks, .aggregators = 1, .levels = 1}, 1);
    stop_file_ = workshop_.folder() + "/stop";
    std::vector<std::string> host_ids;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) host_ids.push_back(cluster_->layout().host_of_rank[rank]);
    auto fleet = chaos::RankFleet::start(
        {.ranks = kRanks,
         .command = {TRIBUTARY_CHAOS_RANK, "--stop-file", stop_file_, "--world-only", "--bytes-max", "65536"},
         .folder = workshop_.folder(),
         .cluster = cluster_.get(),
         .environment = {{"TRIBUTARY_TIMEOUT", "30"}},
         .host_ids = std::move(host_ids)});
    ASSERT_TRUE(fleet) << fleet.error().message;
    fleet_ = std::move(*fleet);
    fleet_->on_round = [this](std::size_t rank, const chaos::RoundReport&) { rounds_ += rank == 0 ? 1 : 0; };
    listen_until([this] { return fleet_->all_ready() && fleet_->all_in_network(); }, 30s);
    ASSERT_TRUE(fleet_->all_in_network()) << fleet_->trouble(30s);
    find_ports();
  }

  void find_ports() {
    auto client = manager_client::ManagerClient::create({.url = cluster_->manager_url(), .token = {}});
    const auto aggregators = client->get("/v1/aggregators");
    ASSERT_TRUE(aggregators) << aggregators.error().message;
    const auto& aggregator = aggregators->at("aggregators").at(0);
    const auto door = parse_endpoint(aggregator.at("data").get<std::string>());
    const auto http = parse_endpoint(aggregator.at("http").get<std::string>());
    ASSERT_TRUE(door && http);
    http_port_ = http->port;
    const auto groups = client->get("/v1/groups");
    ASSERT_TRUE(groups) << groups.error().message;
    worker_port_ = port_behind(door->port, groups->at("groups").at(0).at("group").get<std::uint64_t>(), 0);
    ASSERT_NE(worker_port_, 0) << "the door names no port";
  }

  void listen_until(const std::function<bool()>& done, std::chrono::milliseconds limit) { fleet_->listen(limit, done); }
  /// Measures the rounds of collectives per second over the next `seconds`.
  double speed(double seconds) {
    const std::uint64_t before = rounds_;
    const auto begin = std::chrono::steady_clock::now();
    fleet_->listen(std::chrono::milliseconds(static_cast<int>(seconds * 1000)));
    return static_cast<double>(rounds_ - before) /
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  /// Returns the sum of a metric over all workers.
  [[nodiscard]] std::uint64_t metric(const std::string& name) const {
    const std::string text = page(http_port_, "/metrics");
    std::uint64_t sum = 0;
    const std::string full = "tributary_aggregator_" + name;
    for (std::size_t at = text.find("\n" + full); at != std::string::npos; at = text.find("\n" + full, at + 1)) {
      const std::size_t end = text.find('\n', at + 1);
      const std::size_t space = text.rfind(' ', end);
      sum += std::strtoull(text.c_str() + space + 1, nullptr, 10);
    }
    return sum;
  }
  [[nodiscard]] std::uint64_t dropped() const {
    std::uint64_t sum = 0;
    for (const char* name : {"rejected", "stray", "forged", "unsealed", "repeated"}) {
      sum += metric(std::string("udp_packets_") + name + "_total");
    }
    return sum;
  }

  chaos::Workshop workshop_;
  std::unique_ptr<cli::LocalCluster> cluster_;
  std::string stop_file_;
  std::unique_ptr<chaos::RankFleet> fleet_;
  std::uint64_t rounds_ = 0;
  std::uint16_t http_port_ = 0;
  std::uint16_t worker_port_ = 0;
};

TEST_F(HostileTraffic, IsCountedAndDroppedAndTheGroupGoesOn) {
  const double seconds = static_cast<double>(number_from_environment("TRIBUTARY_HOSTILE_SECONDS", 2));
  const std::uint64_t rate = number_from_environment("TRIBUTARY_HOSTILE_RATE", kRate);
  // Read the packets like a stranger that can overhear the group.
  std::vector<Datagram> seen;
  std::thread listener([&] { seen = overheard(worker_port_, kSeenMax, 1500); });
  fleet_->listen(1500ms);
  listener.join();
  if (seen.empty()) std::printf("without root nothing is overheard: no replays\n");
  const double quiet = speed(seconds);
  ASSERT_GT(quiet, 0);
  std::printf("%-16s %10.1f rounds a second\n", "alone", quiet);
  const char* const told = std::getenv("TRIBUTARY_PACKET_SECURITY");
  const bool sealed = told != nullptr && *told != '\0' && std::string_view(told) != "off";

  Stranger stranger(worker_port_, std::move(seen), 1);
  for (std::size_t i = 0; i < kKinds; ++i) {
    const auto kind = static_cast<Kind>(i);
    // Without seals, a stranger that has seen a connection's name can send packets for it; seals prevent this.
    const bool needs_seal = kind == Kind::unsealed || kind == Kind::changed;
    if (!stranger.can(kind) || (needs_seal && !sealed)) continue;
    const std::uint64_t dropped_before = dropped();
    std::atomic<bool> over = false;
    std::atomic<std::uint64_t> sent = 0;
    std::thread flood([&] {
      const auto begin = std::chrono::steady_clock::now();
      while (!over) {
        const double age = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        while (static_cast<double>(sent) < age * static_cast<double>(rate) && !over) {
          stranger.send(kind);
          ++sent;
        }
        std::this_thread::sleep_for(500us);
      }
    });
    const double flooded = speed(seconds);
    over = true;
    flood.join();
    const std::uint64_t counted = dropped() - dropped_before;
    std::printf("%-16s %10.1f rounds a second, %llu sent, %llu dropped and counted\n",
                std::string(to_string(kind)).c_str(), flooded, static_cast<unsigned long long>(sent.load()),
                static_cast<unsigned long long>(counted));
    // Demand only that the job goes on, at any speed: flood, job and other tests share the machine's cores.
    EXPECT_GT(flooded, quiet / 20) << to_string(kind);
    EXPECT_TRUE(fleet_->all_in_network()) << to_string(kind) << ": the group lost its tree";
    ASSERT_EQ(fleet_->trouble(30s), "") << to_string(kind);
    // The drops do not count all packets: the system's queue may overflow, and the aggregator does not count guessed
    // ends and opens without a cookie.
    const bool is_counted = kind == Kind::garbage || kind == Kind::wrong_checksum || kind == Kind::guessed_name ||
                            kind == Kind::unsealed || kind == Kind::changed || (kind == Kind::replay && sealed);
    if (is_counted) {
      EXPECT_GT(counted, sent / 4) << to_string(kind);
    }
  }
  EXPECT_EQ(fleet_->rank(0).last.groups.at(0).failovers, 0U);
  const double after = speed(seconds);
  std::printf("%-16s %10.1f rounds a second\n", "alone again", after);
  EXPECT_GT(after, quiet / 3);
  std::ofstream(stop_file_) << "stop\n";
  listen_until([this] { return fleet_->all_ended(); }, 30s);
  EXPECT_TRUE(fleet_->all_ended());
  EXPECT_EQ(fleet_->trouble(30s), "");
}

}  // namespace
}  // namespace tributary::hostile
