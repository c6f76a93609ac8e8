// A rank 0 that breaks the protocol: the other ranks end with an error that says so.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/communicator/communicator.h"
#include "client/control/frame_seal.h"
#include "client/control/mutual_proof.h"
#include "tributary/transport/sim_network.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using transport::Duration;
using transport::SimNetwork;

const Endpoint kLiar{"rank0", 7000};

/// A rank 0 that accepts every frame, and sends frames that a test chooses.
class Root final : public transport::Acceptor, public transport::ChannelHandler {
 public:
  explicit Root(SimNetwork& network) : listener_(std::move(*network.transport("rank0").listen(kLiar, *this))) {}
  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override {
    channel_ = std::move(channel);
    challenge(proof_.nonce());
    return this;
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    body_.resize(header.payload_bytes);
    return transport::Accept{body_};
  }
  /// This rank 0 knows the secret, and lies only after it has proved itself.
  void on_frame(transport::Channel&, const FrameHeader& frame, std::span<std::byte> payload) override {
    if (proof_.proved()) return;
    const json hello = json::parse(std::string_view(reinterpret_cast<const char*>(payload.data()), payload.size()));
    const auto answer = proof_.check({.purpose = "control", .connecting = 1, .accepting = 0},
                                     {.nonce = hello.at("nonce"), .proof = hello.at("proof")});
    ASSERT_TRUE(answer && frame.type == FrameType::hello);
    seal_.emplace(proof_.keys().from_accepting);
    challenge(*answer);
  }
  void on_closed(transport::Channel&, const Error&) override {}
  [[nodiscard]] bool met() const { return proof_.proved(); }
  void say(const ControlMessage& message) {
    FrameHeader header;
    header.type = message.type;
    header.epoch = message.epoch;
    header.operation = message.operation;
    header.count = message.value;
    std::string body = message.body;
    seal_->seal(header, std::as_writable_bytes(std::span(body)));
    channel_->send_copy(header, std::as_bytes(std::span(body)));
  }

 private:
  void challenge(const std::string& text) {
    FrameHeader header;
    header.type = FrameType::challenge;
    channel_->send_copy(header, std::as_bytes(std::span(text)));
  }

  AcceptingProof proof_{Secret{}, make_nonce().value()};
  std::optional<FrameSeal> seal_;
  std::vector<std::byte> body_;
  std::unique_ptr<transport::Channel> channel_;
  std::unique_ptr<transport::Listener> listener_;
};

class LyingRank0 : public testing::Test {
 protected:
  LyingRank0() {
    CommunicatorSettings settings;
    settings.rank = 1;
    settings.nranks = 2;
    settings.id.root = kLiar;
    settings.listen = {"rank1", 0};
    settings.advertised_host = settings.host_id = "rank1";
    settings.timeout = 5s;
    communicator_ = std::make_unique<Communicator>(network_.transport("rank1"), nullptr, settings);
    network_.on_due("rank1", [this] {
      network_.transport("rank1").poll(Duration::zero());
      communicator_->tick(network_.now());
      network_.wake_at("rank1", network_.now() + 20ms);
    });
    network_.wake_at("rank1", network_.now() + 1us);
    communicator_->start([this](const Status& status) { ready_ = status; });
    EXPECT_TRUE(network_.run_until([this] { return root_.met(); }, network_.now() + 1s));
  }
  static std::string welcome() {
    return json{{"members", json::array({json::array({0, "rank0", 7000, "rank0", 0})})},
                {"tuning", tuning::encode(tuning::trees_always({.ranks = 2}))},
                {"local", false}}
        .dump();
  }
  void expect_broken(const std::string& words) {
    EXPECT_TRUE(network_.run_until([this] { return communicator_->error().has_value(); }, network_.now() + 1s));
    ASSERT_TRUE(communicator_->error());
    EXPECT_EQ(communicator_->error()->code, Errc::corrupt);
    EXPECT_NE(communicator_->error()->message.find(words), std::string::npos) << communicator_->error()->message;
  }
  static constexpr ControlMessage begin() {
    return {.type = FrameType::commit, .epoch = 0, .operation = kNever, .value = 0, .body = {}};
  }

  SimNetwork network_;
  Root root_{network_};
  std::optional<Status> ready_;
  std::unique_ptr<Communicator> communicator_;
};

TEST_F(LyingRank0, AWelcomedRankBegins) {
  root_.say({.type = FrameType::welcome, .body = welcome()});
  root_.say(begin());
  EXPECT_TRUE(network_.run_until([this] { return ready_.has_value(); }, network_.now() + 1s));
  EXPECT_TRUE(ready_ && *ready_);
}

TEST_F(LyingRank0, MayNotSpeakOfOperationsBeforeItsWelcome) {
  root_.say(begin());
  expect_broken("before its welcome");
  EXPECT_TRUE(ready_ && !*ready_);
}

TEST_F(LyingRank0, MayNotSpeakOfHostsWhereThereAreNone) {
  root_.say({.type = FrameType::welcome, .body = welcome()});
  root_.say(begin());
  ControlMessage hosts = begin();
  hosts.value = kCommitHosts;
  root_.say(hosts);
  expect_broken("speaks of hosts");
}

TEST_F(LyingRank0, IsNotHeardAgainAfterAMalformedWelcome) {
  root_.say({.type = FrameType::welcome, .body = R"({"members": 3})"});
  root_.say({.type = FrameType::welcome, .body = welcome()});
  root_.say(begin());
  expect_broken("malformed table of members");
  EXPECT_FALSE(communicator_->ready());
}

TEST_F(LyingRank0, MayNotEndTreesThatAreStillInUse) {
  root_.say({.type = FrameType::welcome, .body = welcome()});
  root_.say(begin());
  root_.say({.type = FrameType::finalize});
  expect_broken("ends the communicator");
}

}  // namespace
}  // namespace tributary::client
