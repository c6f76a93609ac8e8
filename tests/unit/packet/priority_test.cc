// The packets of a connection get the priority of its channel, and no other packets of the same port get it.
#include "tests/unit/packet/ends.h"
#include "transport/packet/faulty_port.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;

struct Sent {
  std::uint8_t host = 0;
  PacketType type{};
  std::uint32_t priority = 0;
};

/// Notes the datagrams that another port sends.
class NotingPort final : public PacketPort {
 public:
  NotingPort(std::unique_ptr<PacketPort> port, std::vector<Sent>& sent) : port_(std::move(port)), sent_(sent) {}
  std::size_t receive(std::span<ReceivedPacket> into) override { return port_->receive(into); }
  bool send(const PacketAddress& to, std::span<const std::byte> header, std::span<const std::byte> payload) override {
    PacketHeader told;
    std::memcpy(static_cast<void*>(&told), header.data(), sizeof told);
    sent_.push_back({to.ip[15], told.type, priority_});
    return port_->send(to, header, payload);
  }
  void set_priority(std::uint32_t priority) noexcept override { priority_ = priority; }
  void flush() override { port_->flush(); }
  void wait(Duration limit) override { port_->wait(limit); }
  void wake() noexcept override { port_->wake(); }
  std::size_t datagram_bytes_max(const PacketAddress& to) override { return port_->datagram_bytes_max(to); }
  PacketAddress local() const override { return port_->local(); }

 private:
  std::unique_ptr<PacketPort> port_;
  std::vector<Sent>& sent_;
  std::uint32_t priority_ = 0;
};

TEST(PacketPriority, IsOnThePacketsOfItsConnectionAndNotOnThoseThatOpenOrEndOne) {
  SimPackets network{79};
  std::vector<Sent> sent;
  const auto open = network.opener(1);
  PacketTransport server(
      [&](const Endpoint& at) -> Result<std::unique_ptr<PacketPort>> {
        auto port = open(at);
        if (!port) return port;
        return std::make_unique<NotingPort>(std::move(*port), sent);
      },
      {.seed = 1}, network.time());
  Sinks sinks;
  const auto listener = server.listen({SimPackets::host(1), 0}, sinks).value();
  PacketTransport second(network.opener(2), {.seed = 2}, network.time());
  PacketTransport third(network.opener(3), {.seed = 3}, network.time());
  Source from_second(1000), from_third(1000);
  from_second.channel = second.connect(listener->local(), from_second, 10s);
  from_third.channel = third.connect(listener->local(), from_third, 10s);
  const auto run = [&](const std::function<bool()>& done) {
    return network.run_until({&server, &second, &third}, done, 20s);
  };
  const auto all_have = [&](std::uint64_t frames) {
    return sinks.all.size() == 2 && std::ranges::all_of(sinks.all, [&](auto& one) { return one->frames >= frames; });
  };
  ASSERT_TRUE(run([&] { return all_have(1); }));
  for (const Sent& one : sent) EXPECT_EQ(one.priority, 0U) << "a channel has none before it gets one";
  for (const auto& sink : sinks.all)
    sink->channel->set_priority(sink->channel->peer().starts_with(SimPackets::host(2) + ":") ? 52 : 53);

  sent.clear();
  ASSERT_TRUE(run([&] { return all_have(100); }));
  for (const auto& sink : sinks.all) sink->channel->close();
  ASSERT_TRUE(run([&] { return from_second.closed && from_third.closed; }));
  std::map<std::uint8_t, int> flows;
  int ends = 0;
  for (const Sent& one : sent) {
    const bool flow = one.type == PacketType::data;
    ++(flow ? flows[one.host] : ends);
    EXPECT_EQ(one.priority, flow ? 50U + one.host : 0U);
  }
  EXPECT_EQ(flows.size(), 2U);
  EXPECT_GE(ends, 2);
}

TEST(PacketPriority, OfADatagramThatAFaultyPortHoldsBackIsKept) {
  SimPackets network{80};
  std::vector<Sent> sent;
  const auto port = make_faulty(std::make_unique<NotingPort>(network.opener(1)({}).value(), sent), {.overtaken = 1000});
  const std::vector<std::byte> header(kPacketHeaderBytes);
  for (const std::uint8_t host : std::to_array<std::uint8_t>({2, 3, 2})) {
    port->set_priority(50U + host);
    ASSERT_TRUE(port->send(SimPackets::address(host, 9), header, {}));
    port->set_priority(0);
  }
  for (int i = 0; i < 8; ++i) port->flush();
  ASSERT_EQ(sent.size(), 3U);
  for (const Sent& one : sent) EXPECT_EQ(one.priority, 50U + one.host);
}

}  // namespace
}  // namespace tributary::transport::packet::test
