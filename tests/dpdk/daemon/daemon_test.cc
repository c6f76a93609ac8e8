// An aggregator with two workers over one device. A door sends each connection to the worker of its lane. The door and
// each worker have a queue, and a datagram may come by any queue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "aggregator/daemon/daemon.h"
#include "aggregator/daemon/modules.h"
#include "tests/dpdk/port/rings.h"
#include "tests/system/aggregator/fake_manager.h"
#include "tests/system/aggregator/process.h"
#include "tests/system/aggregator/raw_socket.h"
#include "tests/unit/aggregator/child.h"

// This process starts DPDK once, for the daemon and its children.
extern "C" const tributary::aggregator::DpdkModule tributary_aggregator_dpdk;

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

constexpr std::uint16_t kWorkers = 2;
constexpr std::uint16_t kQueues = kWorkers + 1;
constexpr std::uint16_t kPort = 7471;

class DpdkDaemon : public ::testing::Test {
 protected:
  void SetUp() override {
    // The queues of a wire stay separate: this test receives by its own second queue what the daemon sends by its
    // second queue.
    const auto names = transport::dpdk::test::wired_devices(kQueues);
    auto device = transport::DpdkDevice::open(
        {.device = names[1], .addresses = {"10.7.0.2/24"}, .queues = kQueues, .descriptors = 256});
    ASSERT_TRUE(device) << device.error().message;
    for (std::uint16_t queue = 0; queue < kQueues; ++queue) {
      transports_.push_back(
          std::make_unique<transport::DpdkTransport>(*device, transport::DpdkSettings{.queue = queue}));
    }
    // A transport opens its port when it is first used.
    for (auto& transport : transports_) listeners_.push_back(transport->listen({{}, 0}, nobody_).value());
    Settings settings;
    settings.name = "root";
    settings.host_id = "here";
    settings.manager = manager_.url();
    settings.state_file = folder_.file("root.key");
    settings.transport = "dpdk";
    settings.listen = {{"0.0.0.0", kPort}};
    settings.http_listen = {"127.0.0.1", 0};
    settings.workers = kWorkers;
    settings.memory = 64ULL << 20U;
    settings.dpdk_device = names[0];
    settings.dpdk_addresses = "10.7.0.1/24";
    settings.dpdk_descriptors = 256;
    settings.dpdk_sleep = std::chrono::milliseconds(1);
    use_dpdk_module(tributary_aggregator_dpdk);
    auto daemon = Daemon::start(settings);
    ASSERT_TRUE(daemon) << daemon.error().message;
    daemon_ = std::move(*daemon);
    ASSERT_TRUE(eventually([&] { return metric("manager_key_known") == 1; }));
  }

  /// Rings hand over the buffers themselves, so each side holds some buffers of the other side's pool. The daemon gives
  /// the test's buffers back when it ends; the daemon's buffers that this test may still hold are not checked.
  void TearDown() override {
    children_.clear();
    listeners_.clear();
    static auto* const for_ever = new std::vector<std::unique_ptr<transport::DpdkTransport>>;
    std::ranges::move(transports_, std::back_inserter(*for_ever));
    daemon_.reset();
  }

  [[nodiscard]] Bytes join_of(std::uint8_t lane, std::uint16_t child, std::uint16_t children) const {
    TokenClaims c = claims_of_rank("root", kEpoch, child, children, end_of_new_token());
    c.lane = lane;
    return encode(TokenChain{*manager_.key().sign(c)});
  }

  /// A child whose first frame names a group and a lane, by which the door chooses a worker.
  Child& child(std::uint64_t group, std::uint8_t lane, Bytes join) {
    Child& made =
        *children_.emplace_back(std::make_unique<Child>(*transports_[0], Endpoint{"10.7.0.1", kPort}, Bytes{}, kEpoch));
    FrameHeader header;
    header.type = FrameType::join;
    header.group = group;
    header.lane = lane;
    made.send(header, std::move(join));
    return made;
  }

  bool run_until(const std::function<bool()>& done) {
    return eventually([&] {
      for (const TimePoint end = Clock::now() + std::chrono::milliseconds(1); Clock::now() < end;) {
        for (auto& transport : transports_) transport->poll({});
      }
      return done();
    });
  }

  [[nodiscard]] double metric(const std::string& name, const std::string& label = {}) const {
    std::istringstream lines(http_get(daemon_->http_endpoint().port, "/metrics").body);
    double sum = 0;
    bool found = false;
    for (std::string line; std::getline(lines, line);) {
      const std::string_view full = std::string_view(line).substr(0, line.find_last_of(' '));
      if (full.substr(0, full.find('{')) != "tributary_aggregator_" + name) continue;
      if (!full.contains(label)) continue;
      found = true;
      sum += std::stod(line.substr(line.find_last_of(' ')));
    }
    EXPECT_TRUE(found) << "there is no " << name << " " << label;
    return sum;
  }

  using Clock = transport::Clock;
  using TimePoint = transport::TimePoint;
  struct Nobody final : transport::Acceptor {
    transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel>) override { return nullptr; }
  } nobody_;
  TemporaryFolder folder_;
  FakeManager manager_;
  std::unique_ptr<Daemon> daemon_;
  std::vector<std::unique_ptr<transport::DpdkTransport>> transports_;
  std::vector<std::unique_ptr<transport::Listener>> listeners_;
  std::vector<std::unique_ptr<Child>> children_;
};

// The first frame of a connection names its group and lane. The door believes this only for the choice of a worker.
TEST_F(DpdkDaemon, RefusesAJoinWhoseHeaderDiffersFromItsToken) {
  std::vector<Child*> all;
  for (std::uint8_t lane = 0; lane < 2; ++lane) all.push_back(&child(0, 0, join_of(lane, 0, 2)));
  ASSERT_TRUE(run_until([&] { return metric("joins_accepted_total") + metric("joins_refused_total") == 2; }));
  ASSERT_EQ(metric("joins_refused_total"), 1) << "both lanes are at one worker";
  ASSERT_TRUE(run_until([&] { return all[0]->refused || all[1]->refused; }));
  const bool second = all[1]->refused.has_value();
  EXPECT_THAT(*all[second ? 1 : 0]->refused, HasSubstr("asked for with another group or lane than its token"));
  EXPECT_FALSE(all[second ? 0 : 1]->refused) << *all[second ? 0 : 1]->refused;
  EXPECT_EQ(metric("lanes_active"), 1);
  EXPECT_EQ(metric("memory_reserved_bytes"), 3.0 * kWindow * kSegmentBytes);
}

TEST_F(DpdkDaemon, ServesEachLaneAtItsOwnWorker) {
  std::vector<Child*> all;
  for (std::uint8_t lane = 0; lane < 2; ++lane) {
    for (std::uint16_t rank = 0; rank < 2; ++rank) all.push_back(&child(kGroup, lane, join_of(lane, rank, 2)));
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(all, &Child::ready); })) << all[0]->refused.value_or("");
  for (const char* worker : {R"(worker="0")", R"(worker="1")"}) EXPECT_EQ(metric("sessions_open", worker), 2);
  for (std::uint32_t i = 0; i < 4; ++i) {
    FrameHeader header;
    header.type = FrameType::contribution;
    header.group = kGroup;
    header.lane = static_cast<std::uint8_t>(i / 2);
    header.epoch = kEpoch;
    header.flags = frame_flags::kWantsResult;
    header.set_signature(kSum);
    all[i]->send(header, bytes_of(floats(i, 16)));
  }
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(all, [](Child* c) { return c->results.size() == 1; }); }));
  EXPECT_EQ(all[1]->results[0].payload, bytes_of(sum_of({floats(0, 16), floats(1, 16)})));
  EXPECT_EQ(all[2]->results[0].payload, bytes_of(sum_of({floats(2, 16), floats(3, 16)})));
  // All packets of the test's first transport come by the first queue, whose port hands over the packets for other
  // workers.
  EXPECT_GT(metric("dpdk_frames_handed_over_total", R"(worker="0")"), 0);
}

TEST_F(DpdkDaemon, ReportsItsDeviceAndTheFramesThatItDropped) {
  Child& only = child(kGroup, 0, join_of(0, 0, 1));
  ASSERT_TRUE(run_until([&] { return only.ready; })) << only.refused.value_or("");
  // Sends to a port where no process listens, by each queue: the queues of the workers and of the door.
  for (std::uint16_t queue = 0; queue < kQueues; ++queue) {
    children_.push_back(std::make_unique<Child>(*transports_[queue], Endpoint{"10.7.0.1", 9}, Bytes{}, kEpoch));
  }
  ASSERT_TRUE(run_until([&] { return metric("dpdk_answers_total", R"(to="unknown_port")") >= kQueues; }));
  EXPECT_GT(metric("dpdk_device_received_packets_total"), 0);
  EXPECT_GT(metric("dpdk_device_sent_packets_total"), 0);
  EXPECT_EQ(metric("dpdk_device_lost_total", R"(reason="missed")"), 0);
  EXPECT_EQ(metric("dpdk_device_lost_total", R"(reason="no_buffer")"), 0);
  EXPECT_EQ(metric("dpdk_neighbours"), 1);
  EXPECT_EQ(metric("dpdk_neighbours_failed_total"), 0);
  EXPECT_EQ(metric("dpdk_neighbours_moved_total"), 0);
  EXPECT_EQ(metric("dpdk_neighbours_full_total"), 0);
  EXPECT_EQ(metric("dpdk_path_mtu_told_total"), 0);
  EXPECT_EQ(metric("dpdk_packets_unsent_no_buffer_total"), 0);
  EXPECT_EQ(metric("dpdk_link_up"), 1);
  EXPECT_GT(metric("dpdk_buffers_in_use"), 0);
  // Rings have no rules; the aggregator wants two rules for each of three ports.
  EXPECT_EQ(metric("dpdk_rules_wanted"), 2 * kQueues);
  EXPECT_EQ(metric("dpdk_rules_in_place"), 0);
  for (const char* worker : {"0", "1", "door"}) {
    EXPECT_GE(metric("dpdk_frames_dropped_total", "worker=\"" + std::string(worker) + R"(",reason="other_port")"), 1);
  }
  EXPECT_EQ(metric("dpdk_frames_foreign_total"), metric("dpdk_frames_dropped_total", R"(reason="other_port")"));
}

}  // namespace
}  // namespace tributary::aggregator::test
