// Parties whose connections come to one busy thread get packets read and written in proportion to their weights,
// whatever the number of their connections.
#include "tests/unit/packet/ends.h"
#include "tributary/transport/turn_share.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;

// Time that the server's thread needs: it is what the parties share.
constexpr auto kTurnTime = 1us;
constexpr auto kPacketTime = 2us;
constexpr std::size_t kPayload = 4000;

/// The connections of one host to the server.
struct Party {
  std::shared_ptr<TurnShare> share;
  std::vector<std::unique_ptr<Sinks::Sink>> sinks;  // on the side that receives
  std::vector<std::unique_ptr<Source>> sources;     // on the other side
  [[nodiscard]] double bytes() const {
    double sum = 0;
    for (const auto& sink : sinks) sum += static_cast<double>(sink->bytes);
    return sum;
  }
};

class PacketShares : public ::testing::Test, public Acceptor {
 protected:
  PacketShares() { listener_ = server_.listen({SimPackets::host(1), 0}, *this).value(); }
  ~PacketShares() override {
    parties_.clear();  // channels end before the network
    listener_.reset();
  }

  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    Party& party = party_at(channel->peer());
    if (party.share) channel->set_turn_share(party.share);
    if (!server_sends_) return receive(party, std::move(channel));
    return send(party, std::move(channel));
  }
  /// Connects `count` clients of one host.
  void connect(std::uint8_t host, int count) {
    clients_.push_back(std::make_unique<PacketTransport>(network_.opener(host), settings(host), network_.time()));
    for (int i = 0; i < count; ++i) {
      if (server_sends_) {
        Party& party = parties_[host];
        auto& sink = party.sinks.emplace_back(std::make_unique<Sinks::Sink>());
        sink->channel = clients_.back()->connect(listener_->local(), *sink, 10s);
      } else {
        auto& source = parties_[host].sources.emplace_back(std::make_unique<Source>(kPayload));
        source->channel = clients_.back()->connect(listener_->local(), *source, 10s);
      }
    }
  }
  void share(std::uint8_t host, std::uint32_t weight) {
    parties_[host].share = std::make_shared<TurnShare>(weight, shares_);
  }
  /// Lets the server take turns that need their time, and the clients as many as they like.
  void run_for(Duration time) {
    for (const TimePoint until = network_.now() + time; network_.now() < until;) {
      const std::uint64_t before = packets();
      server_.poll({});
      network_.advance_to(network_.now() + kTurnTime + (packets() - before) * kPacketTime);
      for (int i = 0; i < 16; ++i) {
        for (const auto& client : clients_) client->poll({});
      }
    }
  }
  /// Runs for some time; returns the bytes of host 2, for each byte of host 3.
  [[nodiscard]] double ratio() {
    run_for(400ms);
    const double first = parties_[2].bytes(), second = parties_[3].bytes();
    run_for(200ms);
    return (parties_[2].bytes() - first) / (parties_[3].bytes() - second);
  }

  bool server_sends_ = false;
  std::map<std::uint8_t, Party> parties_;

 private:
  static PacketSettings settings(std::uint64_t seed) {
    PacketSettings settings;
    settings.seed = seed;
    settings.congestion.target = 100ms;  // no sender has less to send because the server's thread is busy
    return settings;
  }
  static LinkSettings wide() { return {.bytes_per_second = 1e11, .queue_bytes = 256U << 20}; }
  [[nodiscard]] std::uint64_t packets() const {
    const PacketStatistics figures = server_.statistics();
    return figures.packets_received + figures.packets_sent;
  }
  Party& party_at(const std::string& peer) { return parties_.at(peer.starts_with(SimPackets::host(2) + ":") ? 2 : 3); }
  static ChannelHandler* receive(Party& party, std::unique_ptr<Channel> channel) {
    auto& sink = party.sinks.emplace_back(std::make_unique<Sinks::Sink>());
    sink->channel = std::move(channel);
    return sink.get();
  }
  static ChannelHandler* send(Party& party, std::unique_ptr<Channel> channel) {
    auto& source = party.sources.emplace_back(std::make_unique<Source>(kPayload));
    source->channel = std::move(channel);
    source->feed();
    return source.get();
  }

  SimPackets network_{7, wide()};
  PacketTransport server_{network_.opener(1), settings(1), network_.time()};
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<TurnParties> shares_ = std::make_shared<TurnParties>();
  std::vector<std::unique_ptr<PacketTransport>> clients_;
};

TEST_F(PacketShares, WithoutSharesAFloodOfManyConnectionsTakesNearlyAll) {
  connect(2, 16);
  connect(3, 1);
  EXPECT_GT(ratio(), 8);
}

TEST_F(PacketShares, AFloodOfManyConnectionsIsReadNoMoreThanItsShare) {
  share(2, 1);
  share(3, 1);
  connect(2, 16);
  connect(3, 4);
  const double read = ratio();
  EXPECT_GT(read, 0.8);
  EXPECT_LT(read, 1.25);
}

TEST_F(PacketShares, PartiesAreReadInProportionToTheirWeights) {
  share(2, 1);
  share(3, 4);
  connect(2, 16);
  connect(3, 16);
  const double read = ratio();
  EXPECT_GT(read, 0.17);
  EXPECT_LT(read, 0.33);
}

TEST_F(PacketShares, AFloodOfManyReadersIsSentNoMoreThanItsShare) {
  server_sends_ = true;
  share(2, 1);
  share(3, 1);
  connect(2, 16);
  connect(3, 2);
  const double sent = ratio();
  EXPECT_GT(sent, 0.8);
  EXPECT_LT(sent, 1.25);
}

TEST_F(PacketShares, AnIdlePartyCostsTheOtherLittle) {
  connect(2, 16);
  run_for(100ms);
  const double before = parties_[2].bytes();
  run_for(200ms);
  const double alone = parties_[2].bytes() - before;
  share(2, 1);
  share(3, 1);
  for (const auto& sink : parties_[2].sinks) sink->channel->set_turn_share(parties_[2].share);
  run_for(200ms);
  EXPECT_GT(parties_[2].bytes() - before - alone, 0.9 * alone);
}

TEST_F(PacketShares, AConnectionThatWaitsStillEnds) {
  share(2, 1);
  share(3, 1);
  connect(2, 16);
  connect(3, 1);
  run_for(50ms);
  for (const auto& source : parties_[2].sources) source->channel.reset();
  run_for(100ms);
  for (const auto& sink : parties_[2].sinks) EXPECT_TRUE(sink->closed) << "the server saw no end";
}

}  // namespace
}  // namespace tributary::transport::packet::test
