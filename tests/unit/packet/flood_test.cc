// Opens of dishonest clients cost little memory, and keep no honest client out.
#include "tests/unit/packet/packets.h"
#include "transport/packet/half_open.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;

class FloodedPackets : public Packets {};

TEST_F(FloodedPackets, OpensFromForgedAddressesAreNotRemembered) {
  start();
  auto stranger = network_.opener(9)({}).value();
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    Handshake handshake;
    handshake.connection = i << 30;
    handshake.cookie = i % 2 == 0 ? 0 : i;  // zero or a guess
    PacketHeader header;
    header.type = PacketType::open;
    header.connection = handshake.connection;
    forge(*stranger, header, std::as_bytes(std::span(&handshake, 1)));
  }
  run([] { return false; }, 100ms);
  EXPECT_EQ(server_->statistics().connections, 0U);
  EXPECT_EQ(server_->statistics().cookies_wrong, 500U);
  EXPECT_LE(server_->statistics().bytes_sent, server_->statistics().bytes_received)
      << "no answer is longer than its question";
}

/// Holds half-open places: it shows the cookie, and sends no more packets.
class Flooder {
 public:
  Flooder(SimPackets& network, std::uint8_t host, const PacketAddress& to)
      : port_(network.opener(host)({}).value()), to_(to), name_(std::uint64_t{host} << 32U) {}
  void knock() { open(++name_, 0); }
  /// Answers the challenges that have arrived.
  void turn() {
    std::array<ReceivedPacket, 32> into;
    for (std::size_t count = port_->receive(into); count > 0; count = port_->receive(into))
      take(std::span(into).first(count));
  }
  std::uint64_t refused = 0;
  bool completes = false;  // true: it also sends a packet, so that the connection opens

 private:
  void take(std::span<ReceivedPacket> packets) {
    for (const ReceivedPacket& packet : packets) {
      const auto header = decode_packet(packet.bytes);
      if (!header) continue;
      if (header->type == PacketType::accept && completes) {
        ping(decode_handshake(payload_of(*header, packet.bytes))->connection);
      }
      refused += header->type == PacketType::refuse ? 1U : 0U;
      if (header->type != PacketType::challenge) continue;
      open(header->connection, decode_handshake(payload_of(*header, packet.bytes))->cookie);
    }
  }
  void ping(std::uint64_t connection) {
    PacketHeader header;
    header.type = PacketType::data;
    header.connection = connection;
    header.flags = packet_flags::kPing;
    std::array<std::byte, kPacketHeaderBytes> bytes;
    encode(header, bytes, {}, {});
    EXPECT_TRUE(port_->send(to_, bytes, {}));
    port_->flush();
  }
  void open(std::uint64_t name, std::uint64_t cookie) {
    Handshake handshake;
    handshake.connection = name;
    handshake.cookie = cookie;
    handshake.datagram_bytes = 1472;
    PacketHeader header;
    header.type = PacketType::open;
    header.connection = name;
    const auto payload = std::as_bytes(std::span(&handshake, 1));
    std::vector<std::byte> bytes(kPacketHeaderBytes);
    encode(header, std::span(bytes).first<kPacketHeaderBytes>(), payload, {});
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    EXPECT_TRUE(port_->send(to_, bytes, {}));
    port_->flush();
  }
  std::unique_ptr<PacketPort> port_;
  PacketAddress to_;
  std::uint64_t name_;
};

TEST_F(FloodedPackets, AFloodOfHalfOpenConnectionsKeepsNobodyOut) {
  network_.link().latency = 1ms;
  PacketSettings few = settings(1);
  few.half_open_max = 64;
  server_ = std::make_unique<PacketTransport>(network_.opener(1), few, network_.time());
  listener_ = server_->listen({SimPackets::host(1), 0}, sinks_).value();
  client_ = std::make_unique<PacketTransport>(network_.opener(2), settings(2), network_.time());
  Flooder flood(network_, 9, SimPackets::address(1, listener_->local().port));
  const auto flood_for = [&](int turns, const std::function<bool()>& done) {
    for (int i = 0; i < turns && !done(); ++i) {
      for (int j = 0; j < 30; ++j) flood.knock();
      run([] { return false; }, 100us);
      flood.turn();
    }
    return done();
  };
  ASSERT_FALSE(flood_for(50, [] { return false; }));
  ASSERT_EQ(server_->statistics().connections, 64U);
  EXPECT_GT(server_->statistics().displaced, 500U);
  for (std::size_t i = 0; i < 5; ++i) {
    Source source(1000, 1);
    source.channel = client_->connect(listener_->local(), source, 10s);
    // Its round trip takes as long as 600 opens of other clients, so it would lose its place long before its packet
    // arrives if the oldest of all had to go.
    EXPECT_TRUE(flood_for(2000, [&] { return sinks_.all.size() == i + 1 && sinks_.all[i]->frames == 1; })) << i;
    EXPECT_FALSE(source.closed) << source.closed->message;
  }
  EXPECT_EQ(flood.refused, 0U);
}

/// Refuses every connection from host 9.
class Picky final : public Acceptor {
 public:
  explicit Picky(Acceptor& others) : others_(others) {}
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    return channel->peer().starts_with(SimPackets::host(9)) ? nullptr : others_.on_accept(std::move(channel));
  }

 private:
  Acceptor& others_;
};

TEST_F(FloodedPackets, AFloodOfConnectionsThatAreClosedAtOnceKeepsNobodyOut) {
  PacketSettings few = settings(1);
  few.connections_max = 64;
  few.half_open_max = 16;
  Picky picky(sinks_);
  server_ = std::make_unique<PacketTransport>(network_.opener(1), few, network_.time());
  listener_ = server_->listen({SimPackets::host(1), 0}, picky).value();
  client_ = std::make_unique<PacketTransport>(network_.opener(2), settings(2), network_.time());
  Flooder flood(network_, 9, SimPackets::address(1, listener_->local().port));
  flood.completes = true;
  for (std::size_t i = 0; i < 5; ++i) {
    Source source(1000, 1);
    for (int turn = 0; turn < 100; ++turn) {
      if (turn == 50) source.channel = client_->connect(listener_->local(), source, 10s);
      for (int j = 0; j < 30; ++j) flood.knock();
      run([] { return false; }, 100us);
      flood.turn();
    }
    EXPECT_EQ(sinks_.all.size(), i + 1);
    EXPECT_FALSE(source.closed) << source.closed->message;
  }
  EXPECT_GT(server_->statistics().accepted, 500U);
  EXPECT_LE(server_->statistics().connections, 64U);
}

TEST(HalfOpen, GivesAwayTheOldestPlaceOrTheOldestOfTheSameSource) {
  HalfOpen places(16);  // two for each host
  const auto at = [](std::uint8_t host, std::uint16_t port) { return SimPackets::address(host, port); };
  for (std::uint16_t i = 1; i <= 16; ++i) {
    EXPECT_EQ(places.in_the_way(at(9, i)), 0U);
    places.add(i, i == 1 ? at(3, i) : at(9, i));
  }
  EXPECT_EQ(places.in_the_way(at(4, 1)), 1U) << "the oldest connection makes room";
  EXPECT_EQ(places.in_the_way(at(9, 99)), 2U) << "the source's own oldest connection makes room";
  places.remove(1);
  places.remove(1);
  EXPECT_EQ(places.in_the_way(at(9, 99)), 0U);
  places.add(17, at(4, 1));
  EXPECT_EQ(places.in_the_way(at(9, 99)), 2U);
  EXPECT_EQ(places.in_the_way(at(4, 2)), 2U);
  for (std::uint64_t i = 2; i <= 17; ++i) places.remove(i);
  EXPECT_EQ(places.size(), 0U);
  PacketAddress six{{0xFD, 7, 1, 2, 3, 4, 5, 6, 1}, 1};
  for (std::uint64_t i = 1; i <= 16; ++i) {
    six.ip[15] = static_cast<std::uint8_t>(i);
    places.add(i, i == 1 ? at(3, 1) : six);
  }
  six.ip[15] = 200;
  EXPECT_EQ(places.in_the_way(six), 2U) << "one network of IPv6 counts as one";
  six.ip[7] = 7;
  EXPECT_EQ(places.in_the_way(six), 1U);
}

}  // namespace
}  // namespace tributary::transport::packet::test
