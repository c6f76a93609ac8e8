// A process without the group's secret answers at rank 0's address, or stands between a rank and rank 0.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/communicator/communicator.h"
#include "tributary/transport/sim_network.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using transport::Duration;
using transport::SimNetwork;

const Endpoint kRoot{"rank0", 7000}, kFake{"fake", 7000};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

FrameHeader header_of(FrameType type) {
  FrameHeader header;
  header.type = type;
  return header;
}

/// A rank that runs on the time of the simulated network.
class Member {
 public:
  Member(SimNetwork& network, std::uint32_t rank, const Endpoint& root) : network_(network) {
    const std::string host = "rank" + std::to_string(rank);
    CommunicatorSettings settings;
    settings.rank = rank;
    settings.nranks = 2;
    settings.id.root = root;
    settings.id.secret[0] = std::byte{42};
    settings.listen = {host, 0};
    settings.advertised_host = settings.host_id = host;
    settings.timeout = 5s;
    communicator = std::make_unique<Communicator>(network.transport(host), nullptr, settings);
    if (rank == 0) listener_ = std::move(*network.transport(host).listen(kRoot, *communicator));
    network.on_due(host, [this, host] {
      network_.transport(host).poll(Duration::zero());
      communicator->tick(network_.now());
      network_.wake_at(host, network_.now() + 20ms);
    });
    network.wake_at(host, network.now() + 1us);
    communicator->start([this](const Status& status) { ready = status; });
  }
  [[nodiscard]] bool ended() const { return communicator->error().has_value(); }

  std::unique_ptr<Communicator> communicator;
  std::optional<Status> ready;

 private:
  SimNetwork& network_;
  std::unique_ptr<transport::Listener> listener_;
};

/// A process that sends a test's frames to each rank that connects, and keeps all frames that
/// come.
class Fake final : public transport::Acceptor, public transport::ChannelHandler {
 public:
  explicit Fake(SimNetwork& network) : network_(network) {
    listener_ = std::move(*network_.transport("fake").listen(kFake, *this));
    network_.on_due("fake", [this] { network_.transport("fake").poll(Duration::zero()); });
  }
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    ++came;
    if (turns_away > 0) {
      --turns_away;
      return nullptr;
    }
    channels_.push_back(std::move(channel));
    if (greets) say(FrameType::challenge, "000102030405060708090a0b0c0d0e0f");
    return this;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    body_.resize(header.payload_bytes);
    return transport::Accept{body_};
  }
  void on_frame(transport::Channel&, const FrameHeader&, std::span<std::byte> payload) override {
    heard.emplace_back(text_of(payload));
    if (then) then(*this);
  }
  void on_closed(transport::Channel&, const Error&) override {}
  void say(FrameType type, const std::string& text) {
    channels_.back()->send_copy(header_of(type), std::as_bytes(std::span(text)));
  }

  bool greets = true;
  int turns_away = 0;
  int came = 0;
  std::function<void(Fake&)> then;  // called for each frame that has come
  std::vector<std::string> heard;

 private:
  SimNetwork& network_;
  std::vector<std::byte> body_;
  std::vector<std::unique_ptr<transport::Channel>> channels_;
  std::unique_ptr<transport::Listener> listener_;
};

class FakeRank0 : public testing::Test {
 protected:
  SimNetwork network_;
};

void expect_told_nothing(const Fake& fake) {
  for (const std::string& text : fake.heard) {
    const json hello = json::parse(text, nullptr, false);
    ASSERT_TRUE(hello.is_object()) << text;
    for (const auto& [name, value] : hello.items()) EXPECT_TRUE(name == "rank" || name == "nonce" || name == "proof");
  }
}

TEST_F(FakeRank0, IsToldNothingAndNotBelieved) {
  const std::vector<std::pair<std::string, std::function<void(Fake&)>>> cases{
      {"a made-up proof", [](Fake& f) { f.say(FrameType::challenge, std::string(64, 'a')); }},
      {"the rank's own proof",
       [](Fake& f) { f.say(FrameType::challenge, json::parse(f.heard.back()).at("proof").get<std::string>()); }},
      {"a second nonce", [](Fake& f) { f.say(FrameType::challenge, "ffffffffffffffffffffffffffffffff"); }},
      {"a refusal", [](Fake& f) { f.say(FrameType::abort, "wrong unique id"); }},
      {"a refusal that nobody can print", [](Fake& f) { f.say(FrameType::abort, std::string("\x1b[31m\n\0x", 8)); }},
  };
  for (const auto& [name, then] : cases) {
    SCOPED_TRACE(name);
    SimNetwork network;
    Fake fake(network);
    fake.then = then;
    Member rank(network, 1, kFake);
    ASSERT_TRUE(network.run_until([&] { return rank.ended(); }, network.now() + 1s));
    EXPECT_EQ(rank.communicator->error()->code, Errc::denied);
    EXPECT_NE(rank.communicator->error()->message.find("has not proved to be rank 0"), std::string::npos);
    EXPECT_EQ(rank.communicator->error()->message.find('\x1b'), std::string::npos);
    EXPECT_EQ(fake.heard.size(), 1U);
    expect_told_nothing(fake);
  }
}

TEST_F(FakeRank0, CannotWelcomeAnybody) {
  for (const FrameType type : {FrameType::welcome, FrameType::commit, FrameType::descriptor, FrameType::freeze}) {
    SCOPED_TRACE(to_string(type));
    SimNetwork network;
    Fake fake(network);
    fake.then = [type](Fake& f) { f.say(type, type == FrameType::welcome ? "{}" : ""); };
    Member rank(network, 1, kFake);
    ASSERT_TRUE(network.run_until([&] { return rank.ended(); }, network.now() + 10s))
        << "the rank ends at the time-out at the latest";
    EXPECT_FALSE(rank.communicator->has_met());
    EXPECT_GT(fake.came, 2) << "the rank tries again, because the next connection may be rank 0's";
    expect_told_nothing(fake);
  }
}

TEST_F(FakeRank0, ARankThatItRefusesTriesAgainUntilTheTimeOut) {
  Fake fake(network_);
  fake.turns_away = 1000;
  Member rank(network_, 1, kFake);
  ASSERT_TRUE(network_.run_until([&] { return rank.ended(); }, network_.now() + 6s));
  EXPECT_EQ(rank.communicator->error()->code, Errc::timed_out);
  EXPECT_GE(fake.came, 6);
  EXPECT_LE(fake.came, 20) << "the rank tries ever more rarely";
}

/// A relay between a rank and the true rank 0. It passes every frame on, with the changes that a test makes.
class Relay final : public transport::Acceptor {
 public:
  explicit Relay(SimNetwork& network) : network_(network) {
    listener_ = std::move(*network_.transport("fake").listen(kFake, *this));
    network_.on_due("fake", [this] { network_.transport("fake").poll(Duration::zero()); });
  }
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    near_.channel = std::move(channel);
    far_.channel = network_.transport("fake").connect(kRoot, far_, 5s);
    return &near_;
  }

  std::function<void(bool from_rank_0, FrameHeader&, std::vector<std::byte>&)> change;
  std::string read;  // all payloads that the relay could read

 private:
  struct Side final : transport::ChannelHandler {
    Side(Relay& r, bool rank_0) : relay(r), from_rank_0(rank_0) {}
    transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
      body.resize(header.payload_bytes);
      return transport::Accept{body};
    }
    void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
      FrameHeader passed = header;
      std::vector<std::byte> bytes(payload.begin(), payload.end());
      relay.read += text_of(payload);
      if (relay.change) relay.change(from_rank_0, passed, bytes);
      other->channel->send_copy(passed, bytes);
    }
    void on_closed(transport::Channel&, const Error&) override { other->channel->close(); }
    Relay& relay;
    const bool from_rank_0;
    Side* other = nullptr;
    std::vector<std::byte> body;
    std::unique_ptr<transport::Channel> channel;
  };

  SimNetwork& network_;
  Side near_{*this, false}, far_{*this, true};
  std::unique_ptr<transport::Listener> listener_;

 public:
  void join_sides() {
    near_.other = &far_;
    far_.other = &near_;
  }
};

struct Relayed {
  explicit Relayed(std::function<void(bool, FrameHeader&, std::vector<std::byte>&)> change) : relay(network) {
    relay.change = std::move(change);
    relay.join_sides();
    rank_0 = std::make_unique<Member>(network, 0, kRoot);
    rank_1 = std::make_unique<Member>(network, 1, kFake);
  }
  SimNetwork network;
  Relay relay;
  std::unique_ptr<Member> rank_0, rank_1;
};

TEST_F(FakeRank0, CannotReadTheMessagesThatItPassesOn) {
  Relayed group(nullptr);
  ASSERT_TRUE(
      group.network.run_until([&] { return group.rank_1->ready && group.rank_0->ready; }, group.network.now() + 2s));
  EXPECT_TRUE(*group.rank_1->ready);  // the relay has changed nothing
  for (const char* secret : {"host_id", "rank1", "members", "tuning"})
    EXPECT_EQ(group.relay.read.find(secret), std::string::npos) << secret;
}

TEST_F(FakeRank0, CannotChangeAMessageUnnoticed) {
  Relayed group([](bool from_rank_0, FrameHeader& header, std::vector<std::byte>& body) {
    if (from_rank_0 && header.type == FrameType::welcome) body[body.size() / 2] ^= std::byte{1};
  });
  ASSERT_TRUE(group.network.run_until([&] { return group.rank_1->ended(); }, group.network.now() + 6s));
  EXPECT_FALSE(group.rank_1->communicator->has_met());
}

TEST_F(FakeRank0, CannotAddAMessage) {
  Relayed group([](bool from_rank_0, FrameHeader& header, std::vector<std::byte>& body) {
    if (!from_rank_0 || header.type != FrameType::welcome) return;
    header = header_of(FrameType::abort);
    header.count = static_cast<std::uint64_t>(Errc::aborted);
    body.clear();
  });
  ASSERT_TRUE(group.network.run_until([&] { return group.rank_1->ended(); }, group.network.now() + 6s));
  EXPECT_NE(group.rank_1->communicator->error()->code, Errc::aborted);
}

// The relay shows the true rank 0 the answer of this rank as the answer of another rank.
TEST_F(FakeRank0, CannotPassOnAProofInTheNameOfAnotherRank) {
  Relayed group([](bool from_rank_0, FrameHeader& header, std::vector<std::byte>& body) {
    if (from_rank_0 || header.type != FrameType::hello || !text_of(body).contains("\"rank\":1")) return;
    json hello = json::parse(text_of(body));
    hello["rank"] = 0;
    const std::string text = hello.dump();
    const auto bytes = std::as_bytes(std::span(text));
    body.assign(bytes.begin(), bytes.end());
  });
  ASSERT_TRUE(group.network.run_until([&] { return group.rank_1->ended(); }, group.network.now() + 6s));
  EXPECT_EQ(group.rank_1->communicator->error()->code, Errc::denied);
  EXPECT_FALSE(group.rank_0->communicator->has_met());
}

}  // namespace
}  // namespace tributary::client
