// An attacker on the path of sealed connections reads all packets, repeats and changes them, and makes packets of its
// own. It can prevent packets from arriving, but it can do no other harm.
#include <cstring>

#include "tests/unit/packet/ends.h"
#include "tests/unit/packet/sealed_keys.h"
#include "transport/packet/seal.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;
using transport::test::sealed_keys;
using Datagram = std::vector<std::byte>;

PacketHeader header_in(const Datagram& bytes) {
  PacketHeader header;
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  return header;
}

/// Shows a host's packets to the test, which may change them.
class Tap final : public PacketPort {
 public:
  struct Wire {
    std::vector<Datagram> seen;
    std::function<void(Datagram&)> change;
  };
  Tap(std::unique_ptr<PacketPort> port, Wire& wire) : port_(std::move(port)), wire_(wire) {}
  std::size_t receive(std::span<ReceivedPacket> into) override { return port_->receive(into); }
  bool send(const PacketAddress& to, std::span<const std::byte> header, std::span<const std::byte> payload) override {
    Datagram bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    if (wire_.seen.size() < 5000) wire_.seen.push_back(bytes);
    if (wire_.change) wire_.change(bytes);
    if (bytes.empty()) return true;
    sent_.push_back(std::move(bytes));
    const auto all = std::span<const std::byte>(sent_.back());
    const std::size_t head = std::min(all.size(), kPortHeaderBytesMax);
    return port_->send(to, all.first(head), all.subspan(head));
  }
  void flush() override {
    port_->flush();
    sent_.clear();
  }
  void wait(Duration limit) override { port_->wait(limit); }
  void wake() noexcept override { port_->wake(); }
  std::size_t datagram_bytes_max(const PacketAddress& to) override { return port_->datagram_bytes_max(to); }
  PacketAddress local() const override { return port_->local(); }

 private:
  std::unique_ptr<PacketPort> port_;
  Wire& wire_;
  std::vector<Datagram> sent_;
};

class Hostile : public ::testing::TestWithParam<PacketSecurity> {
 protected:
  void start(PacketSecurity client, std::uint8_t client_secret = 1) {
    server_ =
        std::make_unique<PacketTransport>(network_.opener(1), settings(1, sealed_keys(GetParam())), network_.time());
    listener_ = server_->listen({SimPackets::host(1), 0}, sinks_).value();
    const auto keys = client == PacketSecurity::off ? nullptr : sealed_keys(client, client_secret);
    const auto open = network_.opener(2);
    client_ = std::make_unique<PacketTransport>(
        [this, open](const Endpoint& at) -> Result<std::unique_ptr<PacketPort>> {
          auto port = open(at);
          if (!port) return port;
          return std::make_unique<Tap>(std::move(*port), wire_);
        },
        settings(2, keys), network_.time());
    stranger_ = network_.opener(9)({}).value();
  }
  static PacketSettings settings(std::uint64_t seed, std::shared_ptr<LinkKeys> keys) {
    PacketSettings settings;
    settings.seed = seed;
    settings.keys = std::move(keys);
    return settings;
  }
  void connect(Source& source) {
    source.channel = client_->connect(listener_->local(), source, 10s);
    source.channel->send_copy(transport::test::header_of(0), {});
  }
  void serve(Source& source) {
    source.channel = client_->connect(listener_->local(), source, 10s);
    ASSERT_TRUE(run([&] { return !sinks_.all.empty() && sinks_.all[0]->frames >= 20; }));
  }
  bool run(const std::function<bool()>& done, Duration limit = 20s) {
    return network_.run_until({server_.get(), client_.get()}, done, limit);
  }
  void inject(const Datagram& bytes) {
    injected_.push_back(bytes);
    const auto all = std::span<const std::byte>(injected_.back());
    const std::size_t head = std::min(all.size(), kPortHeaderBytesMax);
    ASSERT_TRUE(stranger_->send(SimPackets::address(1, listener_->local().port), all.first(head), all.subspan(head)));
    stranger_->flush();
  }
  /// Checks that the stream goes on, and that no byte of it is wrong (the sinks check each byte).
  void goes_on(Source& source) {
    const std::uint64_t frames = sinks_.all[0]->frames;
    ASSERT_TRUE(run([&] { return sinks_.all[0]->frames > frames + 50; }));
    EXPECT_FALSE(source.closed) << source.closed->message;
    EXPECT_FALSE(sinks_.all[0]->closed);
  }

  SimPackets network_{78};
  Sinks sinks_;
  Tap::Wire wire_;
  std::unique_ptr<PacketTransport> server_, client_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<PacketPort> stranger_;
  std::vector<Datagram> injected_;
};
INSTANTIATE_TEST_SUITE_P(Levels, Hostile, ::testing::Values(PacketSecurity::authenticate, PacketSecurity::encrypt),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST_P(Hostile, AServedConnectionNamesItsChildAndItsSecurity) {
  start(GetParam());
  Source source(1000);
  serve(source);
  const auto sealed = sinks_.all[0]->channel->sealed();
  ASSERT_TRUE(sealed);
  EXPECT_EQ(sealed->security, GetParam());
  EXPECT_TRUE(sealed->name.group == 0 || sealed->name == (LinkName{77, 3, 0, 5}));
  EXPECT_EQ(source.channel->sealed(), sealed);
}

TEST_P(Hostile, RepeatedPacketsAreCountedAndDropped) {
  start(GetParam());
  Source source(1000);
  serve(source);
  const std::uint64_t marked = server_->statistics().marked;
  const std::uint64_t sent = server_->statistics().packets_sent;
  // Each packet comes with the mark that slows the sender down.
  network_.link().mark_bytes = 0;
  std::uint64_t repeated = 0;
  for (const Datagram& bytes : wire_.seen) {
    if (header_in(bytes).type != PacketType::data) continue;
    inject(bytes);
    ++repeated;
    if (repeated == 40) break;
  }
  network_.link().mark_bytes = SIZE_MAX;
  network_.advance_to(network_.now() + 1ms);
  for (int i = 0; i < 5; ++i) server_->poll({});
  EXPECT_GE(server_->statistics().repeats, repeated);
  EXPECT_LE(server_->statistics().marked - marked, 64U) << "no repeat is counted as marked";
  EXPECT_LE(server_->statistics().packets_sent - sent, 40U) << "no repeat is answered";
  goes_on(source);
}

TEST_P(Hostile, ChangedPacketsAreCountedAndDropped) {
  start(GetParam());
  Source source(1000);
  serve(source);
  std::uint64_t changed = 0;
  std::uint64_t sent = 0;
  wire_.change = [&](Datagram& bytes) {
    if (header_in(bytes).type != PacketType::data || changed >= 200 || bytes.size() < 200 || ++sent % 5 != 0) return;
    bytes[16 + ++changed * 37 % (bytes.size() - 16)] ^= std::byte{2};
  };
  goes_on(source);
  ASSERT_TRUE(run([&] { return changed == 200; }));
  goes_on(source);
  const PacketStatistics statistics = server_->statistics();
  std::uint64_t dropped = statistics.forged + statistics.repeats;
  for (const std::uint64_t count : statistics.rejects) dropped += count;
  EXPECT_GE(dropped, 190U);
  EXPECT_GE(statistics.forged, 150U);
}

TEST_P(Hostile, PacketsInClearForASealedConnectionAreCountedAndDropped) {
  start(GetParam());
  Source source(1000);
  serve(source);
  const PacketHeader genuine = header_in(wire_.seen.back());
  for (const auto type : {PacketType::data, PacketType::close}) {
    PacketHeader header;
    header.type = type;
    header.connection = genuine.connection;
    header.number = genuine.number + 1;
    header.flags = type == PacketType::data ? packet_flags::kFin : std::uint16_t{0};
    Datagram bytes(kPacketHeaderBytes);
    encode(header, std::span(bytes).first<kPacketHeaderBytes>(), {}, {});
    inject(bytes);
    // The authenticator is all zeros.
    header.flags |= packet_flags::kSealed;
    header.checksum = 0;
    bytes.assign(kPacketHeaderBytes + kSealTagBytes, std::byte{});
    std::memcpy(bytes.data(), &header, sizeof header);
    if (type != PacketType::data) header.checksum = sealed_checksum(bytes);
    std::memcpy(bytes.data(), &header, sizeof header);
    inject(bytes);
  }
  goes_on(source);
  EXPECT_EQ(server_->statistics().unsealed, 2U);
  EXPECT_EQ(server_->statistics().forged, 2U);
}

TEST_P(Hostile, AForgedResetEndsNothing) {
  start(GetParam());
  Source source(1000);
  serve(source);
  PacketHeader header;
  header.type = PacketType::reset;
  // Find the client's name of the connection, which the server's resets would carry.
  for (const Datagram& bytes : wire_.seen) {
    if (header_in(bytes).type == PacketType::open) header.connection = header_in(bytes).connection;
  }
  Datagram bytes(kPacketHeaderBytes);
  encode(header, std::span(bytes).first<kPacketHeaderBytes>(), {}, {});
  for (int i = 0; i < 50; ++i) {
    inject(bytes);
    goes_on(source);
  }
}

TEST_P(Hostile, ALostProcessIsStillNoticedSoon) {
  start(GetParam());
  Source source(1000);
  serve(source);
  const std::uint16_t port = listener_->local().port;
  network_.link().lost = 1000;  // the other side dies without sending a close
  listener_.reset();
  server_.reset();
  for (auto& sink : sinks_.all) sink->channel.reset();
  network_.link().lost = 0;
  server_ =
      std::make_unique<PacketTransport>(network_.opener(1), settings(3, sealed_keys(GetParam())), network_.time());
  listener_ = server_->listen({SimPackets::host(1), port}, sinks_).value();
  const TimePoint begin = network_.now();
  ASSERT_TRUE(run([&] { return source.closed.has_value(); }));
  EXPECT_EQ(source.closed->code, Errc::peer_gone);
  EXPECT_LT(network_.now() - begin, 1s);
}

TEST_P(Hostile, APeerWithAnotherGroupsSecretIsToldSoAndGetsNothing) {
  start(GetParam(), 100);
  Source source(1000);
  connect(source);
  ASSERT_TRUE(run([&] { return source.closed.has_value(); }));
  EXPECT_EQ(source.closed->code, Errc::denied);
  EXPECT_NE(source.closed->message.find("does not know the secret"), std::string::npos) << source.closed->message;
  EXPECT_EQ(server_->statistics().connections, 0U);
  EXPECT_GE(server_->statistics().forged, 1U);
}

TEST_P(Hostile, APeerWithLessSecurityThanDemandedLearnsWhichSettingToChange) {
  const auto less = GetParam() == PacketSecurity::encrypt ? PacketSecurity::authenticate : PacketSecurity::off;
  start(less);
  Source source(1000);
  connect(source);
  ASSERT_TRUE(run([&] { return source.closed.has_value(); }));
  EXPECT_EQ(source.closed->code, Errc::denied);
  const std::string advice = "TRIBUTARY_SECURITY=" + std::string(to_string(GetParam()));
  EXPECT_NE(source.closed->message.find(advice), std::string::npos) << source.closed->message;
  EXPECT_EQ(server_->statistics().connections, 0U);
  EXPECT_GE(server_->statistics().unsealed, 1U);
}

TEST_P(Hostile, AnOpenThatIsMadeWeakerOnTheWayOpensNothing) {
  start(GetParam());
  bool weaker = true;
  wire_.change = [&](Datagram& bytes) {
    PacketHeader header = header_in(bytes);
    if (!weaker || header.type != PacketType::open) return;
    Handshake handshake;
    std::memcpy(static_cast<void*>(&handshake), bytes.data() + kPacketHeaderBytes + kSealTagBytes, sizeof handshake);
    handshake.security = static_cast<std::uint32_t>(PacketSecurity::authenticate);
    if (GetParam() == PacketSecurity::authenticate) handshake.random[0] ^= std::byte{1};
    std::memcpy(bytes.data() + kPacketHeaderBytes + kSealTagBytes, &handshake, sizeof handshake);
    const std::uint32_t checksum = sealed_checksum(bytes);
    std::memcpy(bytes.data() + offsetof(PacketHeader, checksum), &checksum, sizeof checksum);
  };
  Source source(1000);
  connect(source);
  ASSERT_TRUE(run([&] { return source.closed.has_value(); }));
  EXPECT_EQ(server_->statistics().connections, 0U);
}

TEST_P(Hostile, OpensThatAreRepeatedFromElsewhereOpenNothing) {
  start(GetParam());
  Source source(1000);
  serve(source);
  for (const Datagram& bytes : wire_.seen) {
    if (header_in(bytes).type == PacketType::open) inject(bytes);
  }
  goes_on(source);
  EXPECT_EQ(server_->statistics().connections, 1U);
  EXPECT_EQ(sinks_.all.size(), 1U);
}

TEST_P(Hostile, NoPayloadIsReadableWhereItIsEncrypted) {
  start(GetParam());
  Source source(1000);
  serve(source);
  bool readable = false;
  for (const Datagram& bytes : wire_.seen) {
    const Datagram sevens(64, std::byte{7});
    readable |= std::search(bytes.begin(), bytes.end(), sevens.begin(), sevens.end()) != bytes.end();
  }
  EXPECT_EQ(readable, GetParam() == PacketSecurity::authenticate);
}

}  // namespace
}  // namespace tributary::transport::packet::test
