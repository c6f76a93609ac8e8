// Failures of a connection must leave no resources behind: a peer is killed, a port goes down, a device is removed. The
// counts of the resources come from the system (`rdma resource`, /proc/self/fd), not from the transport.
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/rdma/transport/verbs_world.h"
#include "tests/unit/transport/peer.h"

namespace tributary::transport::test {
namespace {

constexpr std::size_t kPayloadBytes = 256U << 10;
constexpr auto kLimit = std::chrono::seconds(60);  // enough for all retries of a queue pair with a silent peer

int run(const std::string& command) {
  return std::system(("PATH=$PATH:/usr/sbin:/sbin; " + command).c_str());
}
bool may_break_things() {
  return std::getenv("RDMA_VIRTUAL") != nullptr && rdma_hosts().size() >= 3;
}

/// Counts of all processes' resources, under names like "rxe0 qp", and of this process's descriptors.
std::map<std::string, long> resources() {
  std::map<std::string, long> counts;
  FILE* const shown = ::popen("PATH=$PATH:/usr/sbin:/sbin rdma resource", "r");
  if (shown == nullptr) return counts;
  std::array<char, 512> line;
  while (std::fgets(line.data(), line.size(), shown) != nullptr) {
    std::istringstream words(line.data());
    std::string number, device, what;
    long count = 0;
    words >> number >> device;
    while (words >> what >> count) {
      if (what != "ctx") counts[device + " " + what] = count;  // the connection manager keeps its own context
    }
  }
  ::pclose(shown);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    counts["descriptors"] += entry.exists();
  return counts;
}

/// Sends large frames until the test ends it.
int endless_sender(const Endpoint& to) {
  auto transport = VerbsTransport::create({.bind_address = rdma_hosts().back()}).value();
  Peer peer;
  peer.channel = transport->connect(to, peer, std::chrono::seconds(30));
  const auto payload = pattern(kPayloadBytes, 3);
  std::uint64_t sequence = 0;
  while (!peer.closed) {
    while (sequence < peer.sent.size() + 8 && peer.channel->send(header_of(sequence), payload, sequence)) ++sequence;
    transport->poll(std::chrono::milliseconds(10));
  }
  return 0;
}

class Failures : public testing::Test {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
  }
  /// The client is on this host.
  void begin(std::size_t host) {
    server_ = VerbsTransport::create({.bind_address = rdma_hosts().front()}).value();
    auto listener = server_->listen({rdma_hosts().front(), 0}, acceptor_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
    client_ = VerbsTransport::create({.bind_address = rdma_hosts().at(host)}).value();
    // The connection manager opens each device once, and keeps it.
    ASSERT_NO_FATAL_FAILURE(stream(2));
    end_connections();
    before_ = resources();
  }

  [[nodiscard]] bool run_until(const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + kLimit;
    while (!done()) {
      if (Clock::now() > limit) return false;
      if (server_->poll({}) + client_->poll({}) == 0) server_->poll(std::chrono::microseconds(100));
    }
    return true;
  }
  /// Lets the client connect and send, so that payloads are under way. Returns when the first `frames` have arrived.
  void stream(std::size_t frames) {
    client_peer_ = std::make_unique<Peer>();
    client_peer_->channel = client_->connect(listener_->local(), *client_peer_, std::chrono::seconds(30));
    client_peer_->when_sent = [this](std::uint64_t) { send_more(); };
    for (int i = 0; i < 8; ++i) send_more();
    EXPECT_TRUE(run_until([&] {
      return client_peer_->closed || (!acceptor_.peers.empty() && acceptor_.peers.back()->frames.size() >= frames);
    }));
    ASSERT_FALSE(client_peer_->closed) << client_peer_->closed->message;
  }
  /// Starts another process, which sends from the last host. Returns when some frames have arrived.
  pid_t start_sender() {
    const std::size_t accepted = acceptor_.accepted;
    std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::string role = "endless-sender", port = std::to_string(listener_->local().port);
    std::array<char*, 4> arguments{program.data(), role.data(), port.data(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ), 0);
    EXPECT_TRUE(run_until([&] { return acceptor_.accepted > accepted && acceptor_.peers.back()->frames.size() >= 3; }));
    return child;
  }
  void send_more() {
    ++sequence_;
    static_cast<void>(client_peer_->channel->send(header_of(sequence_), payload_, sequence_));
  }
  void end_connections() {
    client_peer_.reset();
    acceptor_.peers.clear();
  }
  /// Waits until both ends know of the failure.
  void expect_both_closed() {
    EXPECT_TRUE(run_until([&] { return client_peer_->closed.has_value(); })) << "the client waits for ever";
    EXPECT_TRUE(run_until([&] { return acceptor_.peers.back()->closed.has_value(); })) << "the server waits for ever";
    if (client_peer_->closed) std::printf("client: %s\n", client_peer_->closed->message.c_str());
    if (acceptor_.peers.back()->closed) std::printf("server: %s\n", acceptor_.peers.back()->closed->message.c_str());
  }
  void expect_nothing_left() {
    end_connections();
    auto after = resources();
    EXPECT_TRUE(run_until([&] { return (after = resources()) == before_; }));
    EXPECT_EQ(after, before_);
    const VerbsStatistics figures = server_->statistics();
    EXPECT_EQ(figures.queue_pairs + figures.memory_regions + figures.memory_windows + figures.connections, 0U);
  }
  void expect_all_works() {
    ASSERT_NO_FATAL_FAILURE(stream(3));
    EXPECT_EQ(acceptor_.peers.back()->frames.back().payload, payload_);
  }

  std::vector<std::byte> payload_ = pattern(kPayloadBytes, 4);
  std::uint64_t sequence_ = 0;
  std::unique_ptr<VerbsTransport> server_, client_;
  PeerAcceptor acceptor_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Peer> client_peer_;
  std::map<std::string, long> before_;
};

TEST_F(Failures, AKilledPeerLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(begin(rdma_hosts().size() - 1));
  for (int round = 0; round < 3; ++round) {
    const pid_t child = start_sender();
    ::kill(child, SIGKILL);
    EXPECT_TRUE(run_until([&] { return acceptor_.peers.back()->closed.has_value(); }));
    EXPECT_EQ(acceptor_.peers.back()->closed->code, Errc::peer_gone) << acceptor_.peers.back()->closed->message;
    ::waitpid(child, nullptr, 0);
  }
  expect_nothing_left();
  expect_all_works();
}

TEST_F(Failures, ALinkThatFallsEndsTheConnectionsOfItsPort) {
  if (!may_break_things()) GTEST_SKIP() << "this machine's links are not ours to take down";
  ASSERT_NO_FATAL_FAILURE(begin(1));
  ASSERT_NO_FATAL_FAILURE(stream(3));
  ASSERT_EQ(run("ip link set port1 down"), 0);
  expect_both_closed();
  ASSERT_EQ(run("ip link set port1 up"), 0);
  expect_nothing_left();
  // Do not try a new connection here: if soft-RoCE's connection manager sends while the link is down, its queue pair
  // stops for ever.
}

/// This must be the last test: soft-RoCE removes a device only when every process that has opened it has ended, so the
/// command waits for this process.
TEST_F(Failures, ADeviceThatIsTakenAwayEndsItsConnections) {
  if (!may_break_things()) GTEST_SKIP() << "this machine's devices are not ours to take away";
  ASSERT_NO_FATAL_FAILURE(begin(2));
  ASSERT_NO_FATAL_FAILURE(stream(3));
  ASSERT_EQ(run("rdma link delete rxe2 >/dev/null 2>&1 &"), 0);
  expect_both_closed();
  end_connections();
  for (const VerbsStatistics& figures : {server_->statistics(), client_->statistics()}) {
    EXPECT_EQ(figures.queue_pairs + figures.memory_regions + figures.memory_windows + figures.connections, 0U);
  }
}

}  // namespace
}  // namespace tributary::transport::test

int main(int argc, char** argv) {
  using namespace tributary;
  if (argc == 3 && std::string_view(argv[1]) == "endless-sender") {
    const auto port = static_cast<std::uint16_t>(std::atoi(argv[2]));
    return transport::test::endless_sender({transport::test::rdma_hosts().front(), port});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
