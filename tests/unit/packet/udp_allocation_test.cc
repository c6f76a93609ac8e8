// In steady state the transport allocates nothing: neither for a packet, nor for a frame, nor for a time-out.
#include "../transport/allocations.h"
#include "../transport/peer.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::test {
namespace {

using namespace std::chrono_literals;

/// Sends back what comes, from where it was received.
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

TEST(UdpTransport, AllocatesNothingInSteadyState) {
  UdpTransport server({.datagram_bytes_max = 1472});
  UdpTransport client({.datagram_bytes_max = 1472});
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
  const std::uint64_t before = allocations_so_far();
  ASSERT_TRUE(run(4000));
  EXPECT_EQ(allocations_so_far() - before, 0U);
}

}  // namespace
}  // namespace tributary::transport::test
