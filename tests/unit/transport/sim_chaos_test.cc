// Hosts send frames at random while connections break, and hosts die, hang and lose the network at random. For every
// seed the contract must hold to the last callback, and no code may touch freed memory (the address sanitizer checks
// this).
#include <map>

#include "tests/unit/transport/peer.h"
#include "tributary/transport/sim_network.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

constexpr int kHosts = 6;
constexpr std::uint64_t kFramesPerChannel = 40;
std::string name_of(int host) {
  return "host" + std::to_string(host);
}

/// One end of a connection. It sends numbered frames from memory that it frees with on_sent, and checks all frames that
/// come.
class End : public ChannelHandler {
 public:
  End(SimNetwork& network, int host) : network_(network), host_(host) {}
  void take(std::unique_ptr<Channel> channel) { channel_ = std::move(channel); }

  void send_more() {
    while (next_ < kFramesPerChannel) {
      auto& buffer = buffers_[next_] = pattern(next_ % 7 * 100, next_);
      if (next_ % 5 == 4) {
        channel_->send_copy(header_of(next_), buffer);
        buffers_.erase(next_);
      } else if (!channel_->send(header_of(next_), buffer, next_)) {
        buffers_.erase(next_);
        return;
      }
      ++next_;
    }
  }

  void on_open(Channel&) override { check(); }
  Placement on_header(Channel& channel, const FrameHeader& header) override {
    check();
    EXPECT_EQ(header.sequence, expected_) << "frames stay in order";
    if (network_.random_below(8) == 0) {
      network_.call_at(network_.now() + 3us, [alive = std::weak_ptr(alive_), &channel] {
        if (!alive.expired()) channel.resume();
      });
      return NotYet{};
    }
    place_.assign(header.payload_bytes, std::byte{0});
    return Accept{place_};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    check();
    EXPECT_TRUE(std::ranges::equal(payload, pattern(header.sequence % 7 * 100, header.sequence)));
    ++expected_;
  }
  void on_sent(Channel&, std::uint64_t cookie) override {
    check();
    EXPECT_GT(cookie + 1, told_) << "on_sent comes in the order of the sends";
    told_ = cookie + 1;
    buffers_.erase(cookie);
    send_more();
  }
  void on_closed(Channel&, const Error&) override {
    check();
    closed_ = true;
    buffers_.clear();
  }
  [[nodiscard]] bool complete() const { return expected_ == kFramesPerChannel; }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  void check() const {
    EXPECT_FALSE(closed_) << "on_closed is the last callback";
    EXPECT_TRUE(network_.alive(name_of(host_))) << "a killed host is not called";
  }
  SimNetwork& network_;
  int host_;
  std::map<std::uint64_t, std::vector<std::byte>> buffers_;
  std::vector<std::byte> place_;
  std::uint64_t next_ = 0;
  std::uint64_t expected_ = 0;
  std::uint64_t told_ = 0;
  bool closed_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  std::unique_ptr<Channel> channel_;  // the destructor destroys this member first
};

/// The objects that a process on a host owns.
class Process : public Acceptor {
 public:
  Process(SimNetwork& network, int host) : network_(network), host_(host) {
    listener_ = network.transport(name_of(host)).listen({"", 1}, *this).value();
  }
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    if (network_.random_below(10) == 0) return nullptr;
    return own(std::move(channel));
  }
  void connect(int to) {
    End* end = own(nullptr);
    end->take(network_.transport(name_of(host_)).connect({name_of(to), 1}, *end, 1ms));
    end->send_more();
  }
  void forget_one() {
    if (!ends.empty()) ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(network_.random_below(ends.size())));
  }
  std::vector<std::unique_ptr<End>> ends;

 private:
  End* own(std::unique_ptr<Channel> channel) {
    ends.push_back(std::make_unique<End>(network_, host_));
    if (channel) {
      ends.back()->take(std::move(channel));
      ends.back()->send_more();
    }
    return ends.back().get();
  }
  SimNetwork& network_;
  int host_;
  std::unique_ptr<Listener> listener_;
};

class Chaos {
 public:
  explicit Chaos(std::uint64_t seed) : network({.seed = seed, .frames_queued_max = 8}) {
    for (int i = 0; i < kHosts; ++i) processes.push_back(std::make_unique<Process>(network, i));
  }
  void run() {
    for (int act = 0; act < 120; ++act) {
      do_something();
      for (std::uint64_t i = network.random_below(60); i > 0; --i) network.step();
    }
    for (int i = 0; i < kHosts; ++i) {
      network.resume(name_of(i));
      for (int k = 0; k < kHosts; ++k) network.heal(name_of(i), name_of(k));
      network.heal(name_of(i));
    }
    EXPECT_TRUE(network.run_until_idle());
  }

  SimNetwork network;
  std::vector<std::unique_ptr<Process>> processes;

 private:
  int any() { return static_cast<int>(network.random_below(kHosts)); }
  void do_something() {
    const int host = any();
    const std::string name = name_of(host);
    switch (network.random_below(12)) {
      case 0:
        return network.cut(name, name_of(any()));
      case 1:
        network.kill(name);
        processes[static_cast<std::size_t>(host)].reset();
        (void)network.restart(name);
        processes[static_cast<std::size_t>(host)] = std::make_unique<Process>(network, host);
        return;
      case 2:
        return network.partition(name);
      case 3:
        return network.heal(name);
      case 4:
        return network.pause(name);
      case 5:
        return network.resume(name);
      case 6:
        return network.slow_down(name, std::chrono::microseconds(static_cast<int>(network.random_below(20))));
      case 7:
        return processes[static_cast<std::size_t>(host)]->forget_one();
      default:
        return processes[static_cast<std::size_t>(host)]->connect(any());
    }
  }
};

}  // namespace

TEST(SimChaos, KeepsTheContractFromEverySeed) {
  std::size_t complete = 0;
  std::size_t closed = 0;
  SimStatistics sum;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chaos chaos(seed);
    chaos.run();
    for (const auto& process : chaos.processes) {
      for (const auto& end : process->ends) {
        if (end->complete()) ++complete;
        if (end->closed()) ++closed;
        EXPECT_TRUE(end->complete() || end->closed()) << "all frames of an unbroken connection must arrive";
      }
    }
    sum.half_written += chaos.network.statistics().half_written;
    sum.lost_after_sent += chaos.network.statistics().lost_after_sent;
    chaos.processes.clear();
    EXPECT_TRUE(chaos.network.run_until_idle());
    EXPECT_EQ(chaos.network.statistics().connections, 0U);
    if (HasFailure()) return;
  }
  EXPECT_GT(complete, 1000U);
  EXPECT_GT(closed, 1000U);
  EXPECT_GT(sum.half_written, 10U);
  EXPECT_GT(sum.lost_after_sent, 10U);
}

}  // namespace tributary::transport::test
