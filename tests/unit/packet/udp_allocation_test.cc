// In the steady state the transport allocates no memory for a packet, a frame or a time-out.
#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/transport/allocations.h"
#include "tests/unit/transport/peer.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

/// Sends every frame back from the memory in which it arrived.
class Echo : public Acceptor, public ChannelHandler {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    channel_ = std::move(channel);
    return this;
  }
  Placement on_header(Channel&, const FrameHeader& header) override {
    return Accept{std::span(place_).first(header.payload_bytes)};
  }
  void on_frame(Channel& channel, const FrameHeader& header, std::span<std::byte> payload) override {
    EXPECT_TRUE(channel.send(header, payload, header.sequence));
  }
  void on_closed(Channel&, const Error&) override {}

 private:
  std::vector<std::byte> place_ = std::vector<std::byte>(1 << 20);
  std::unique_ptr<Channel> channel_;
};

class Caller : public ChannelHandler {
 public:
  Placement on_header(Channel&, const FrameHeader& header) override {
    return Accept{std::span(place_).first(header.payload_bytes)};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override {
    ++answers;
    call();
  }
  void on_closed(Channel&, const Error& error) override { FAIL() << error.message; }
  void call() {
    EXPECT_TRUE(channel->send(header_of(answers), std::span(payload_).first(answers % 3 * 60'000), answers));
  }
  std::uint64_t answers = 0;
  std::unique_ptr<Channel> channel;

 private:
  std::vector<std::byte> payload_ = std::vector<std::byte>(1 << 20);
  std::vector<std::byte> place_ = std::vector<std::byte>(1 << 20);
};

void allocates_nothing(const std::shared_ptr<LinkKeys>& keys) {
  UdpTransport server({.datagram_bytes_max = 1472, .keys = keys});
  UdpTransport client({.datagram_bytes_max = 1472, .keys = keys});
  Echo echo;
  const auto listener = server.listen({"127.0.0.1", 0}, echo).value();
  Caller caller;
  caller.channel = client.connect(listener->local(), caller, 10s);
  caller.call();
  const auto run = [&](std::uint64_t answers) {
    const TimePoint limit = Clock::now() + 30s;
    while (caller.answers < answers && Clock::now() < limit) {
      server.poll({});
      client.poll({});
    }
    return caller.answers >= answers;
  };
  ASSERT_TRUE(run(3000));
  // A ring grows once when it is fuller than ever before; on a busy machine this may happen late. An allocation for
  // each packet would happen in every round.
  std::uint64_t least = UINT64_MAX;
  for (std::uint64_t round = 0; round < 5 && least > 0; ++round) {
    const std::uint64_t before = allocations_so_far();
    ASSERT_TRUE(run(3000 + 1000 * (round + 1)));
    least = std::min(least, allocations_so_far() - before);
  }
  EXPECT_EQ(least, 0U);
}

TEST(UdpTransport, AllocatesNothingInSteadyState) {
  allocates_nothing(nullptr);
}

TEST(UdpTransport, AllocatesNothingInSteadyStateWhereItAuthenticates) {
  allocates_nothing(sealed_keys(PacketSecurity::authenticate));
}

TEST(UdpTransport, AllocatesNothingInSteadyStateWhereItEncrypts) {
  allocates_nothing(sealed_keys(PacketSecurity::encrypt));
}

}  // namespace
}  // namespace tributary::transport::test
