// Connections of strangers to the ranks' listeners: some are silent, and some send no proof. They keep no rank out, and
// cost a bounded number of connections and a bounded time.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "client/communicator/communicator.h"
#include "client/control/mutual_proof.h"
#include "tributary/transport/sim_network.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using transport::Duration;
using transport::SimNetwork;

constexpr std::uint32_t kRanks = 4;
constexpr std::size_t kPlaces = Arrivals::kStrangers + 2 * kRanks;

Endpoint listener_of(std::uint32_t rank) {
  return {"rank" + std::to_string(rank), static_cast<std::uint16_t>(7000 + rank)};
}

/// A stranger that connects, perhaps sends a frame, and waits.
class Stranger final : public transport::ChannelHandler {
 public:
  Stranger(transport::Transport& from, const Endpoint& to, const std::string& hello = {}) {
    channel_ = from.connect(to, *this, 10s);
    if (hello.empty()) return;
    FrameHeader header;
    header.type = FrameType::hello;
    channel_->send_copy(header, std::as_bytes(std::span(hello)));
  }
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    body_.resize(header.payload_bytes);
    return transport::Accept{body_};
  }
  void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte>) override {
    heard_reason_ = heard_reason_ || header.type == FrameType::abort;
  }
  void on_closed(transport::Channel&, const Error&) override {}
  [[nodiscard]] bool connected() const { return !channel_->closed(); }
  [[nodiscard]] bool heard_reason() const { return heard_reason_; }

 private:
  std::vector<std::byte> body_;
  std::unique_ptr<transport::Channel> channel_;
  bool heard_reason_ = false;
};

/// A rank that proves itself to another rank and then, on an overloaded machine, sends nothing more.
class SlowRank final : public transport::ChannelHandler {
 public:
  SlowRank(transport::Transport& from, std::uint32_t rank, std::uint32_t to)
      : proof_(Secret{}, {.purpose = "message", .connecting = rank, .accepting = to}),
        channel_(from.connect(listener_of(to), *this, 10s)) {}
  transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
    body_.resize(header.payload_bytes);
    return transport::Accept{body_};
  }
  void on_frame(transport::Channel& channel, const FrameHeader&, std::span<std::byte> payload) override {
    const std::string text(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (proof_.awaits_proof()) {
      EXPECT_TRUE(proof_.check(text));
      return;
    }
    const auto answer = proof_.answer(text);
    ASSERT_TRUE(answer);
    const ProofScope& scope = proof_.scope();
    FrameHeader header;
    header.type = FrameType::peer_hello;
    const std::string hello = R"({"rank": )" + std::to_string(scope.connecting) + R"(, "class": ")" + scope.purpose +
                              R"(", "nonce": ")" + answer->nonce + R"(", "proof": ")" + answer->proof + "\"}";
    channel.send_copy(header, std::as_bytes(std::span(hello)));
  }
  void on_closed(transport::Channel&, const Error&) override {}
  [[nodiscard]] bool proved() const { return proof_.proved(); }
  [[nodiscard]] bool connected() const { return !channel_->closed(); }

 private:
  ConnectingProof proof_;
  std::vector<std::byte> body_;
  std::unique_ptr<transport::Channel> channel_;
};

/// One rank, which sends a message to every other rank as soon as it is ready.
class Talker {
 public:
  Talker(SimNetwork& network, std::uint32_t rank) : network_(network), host_(listener_of(rank).host), rank_(rank) {
    CommunicatorSettings settings;
    settings.rank = rank;
    settings.nranks = kRanks;
    settings.id.root = listener_of(0);
    settings.listen = listener_of(rank);
    settings.advertised_host = settings.host_id = host_;
    settings.timeout = 20s;
    communicator_ = std::make_unique<Communicator>(network.transport(host_), nullptr, settings);
    if (rank == 0) root_ = std::move(*network.transport(host_).listen(listener_of(0), *communicator_));
    network.on_due(host_, [this] {
      network_.transport(host_).poll(Duration::zero());
      communicator_->tick(network_.now());
      network_.wake_at(host_, network_.now() + 20ms);
    });
    network.wake_at(host_, network.now() + 1us);
    communicator_->start([this](const Status& status) {
      ASSERT_TRUE(status) << status.error().message;
      ready_ = true;
    });
  }
  void talk() {
    for (std::uint32_t peer = 0; peer < kRanks; ++peer) {
      if (peer == rank_) continue;
      const auto done = [this](const Status& status) {
        ASSERT_TRUE(status) << status.error().message;
        ++done_;
      };
      communicator_->send_message(peer,
                                  {.sends = true, .send = &out_, .count = 1, .dtype = DType::uint8, .on_done = done});
      communicator_->receive_message(peer, {.recv = &in_[peer], .count = 1, .dtype = DType::uint8, .on_done = done});
    }
  }
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] bool talked() const { return done_ == 2 * (kRanks - 1); }
  [[nodiscard]] std::uint64_t turned_away() const { return communicator_->info().strangers_turned_away; }
  [[nodiscard]] const std::optional<Error>& error() const { return communicator_->error(); }

 private:
  SimNetwork& network_;
  const std::string host_;
  const std::uint32_t rank_;
  std::unique_ptr<transport::Listener> root_;
  std::byte out_{7};
  std::array<std::byte, kRanks> in_{};
  std::uint32_t done_ = 0;
  bool ready_ = false;
  std::unique_ptr<Communicator> communicator_;
};

class Strangers : public testing::Test {
 protected:
  void start(std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t rank = first; rank < end; ++rank) talkers_.emplace_back(network_, rank);
  }
  void come(std::size_t count, const std::string& from, std::uint32_t rank, const std::string& hello = {}) {
    for (std::size_t i = 0; i < count; ++i) strangers_.emplace_back(network_.transport(from), listener_of(rank), hello);
  }
  /// Opens one more connection from `from` to every rank's listener, and again after `period`.
  void flood(const std::string& from, Duration period) {
    for (std::uint32_t rank = 0; rank < talkers_.size(); ++rank) come(1, from, rank);
    network_.call_at(network_.now() + period, [this, from, period] { flood(from, period); });
  }
  [[nodiscard]] std::size_t connected() const {
    return static_cast<std::size_t>(std::ranges::count_if(strangers_, &Stranger::connected));
  }
  [[nodiscard]] bool all(bool (Talker::*is)() const) const {
    return std::ranges::all_of(talkers_, [is](const Talker& talker) { return (talker.*is)(); });
  }
  void expect_ready_and_talking(Duration limit) {
    ASSERT_TRUE(network_.run_until([this] { return all(&Talker::ready); }, network_.now() + limit));
    for (Talker& talker : talkers_) talker.talk();
    ASSERT_TRUE(network_.run_until([this] { return all(&Talker::talked); }, network_.now() + limit));
  }

  SimNetwork network_;
  std::deque<Talker> talkers_;
  std::deque<Stranger> strangers_;
};

TEST_F(Strangers, ARankThatHasProvedItselfIsNoStrangerHoweverSlowItIs) {
  start(0, kRanks);
  ASSERT_TRUE(network_.run_until([this] { return all(&Talker::ready); }, network_.now() + 1s));
  const SlowRank slow(network_.transport("rank3"), 3, 0);
  ASSERT_TRUE(network_.run_until([&] { return slow.proved(); }, network_.now() + 1s));
  come(2 * kPlaces, "stranger", 0);
  network_.run_for(2 * Arrivals::kProofLimit);
  EXPECT_TRUE(slow.connected());
}

TEST_F(Strangers, SilentStrangersKeepNoRankOut) {
  start(0, 1);
  come(2000, "stranger", 0);
  network_.run_for(10ms);
  start(1, kRanks);
  ASSERT_TRUE(network_.run_until([this] { return all(&Talker::ready); }, network_.now() + 1s));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) come(2000, "stranger", rank);
  network_.run_for(10ms);
  expect_ready_and_talking(1s);
  EXPECT_LE(connected(), kRanks * kPlaces);
  for (const Talker& talker : talkers_) EXPECT_GE(talker.turned_away(), 2000 - kPlaces);
}

TEST_F(Strangers, StrangersFromTheAddressOfARankKeepNoRankOut) {
  start(0, 1);
  come(2000, "rank1", 0);
  start(1, kRanks);
  flood("rank1", 50us);  // 20,000 a second, at every rank
  expect_ready_and_talking(1s);
}

TEST_F(Strangers, SilentStrangersHaveALimit) {
  start(0, kRanks);
  come(100, "stranger", 2);
  network_.run_for(Arrivals::kProofLimit - 100ms);
  EXPECT_EQ(connected(), 100U);
  network_.run_for(200ms);
  EXPECT_EQ(connected(), 0U);
  EXPECT_EQ(talkers_[2].turned_away(), 100U);
  expect_ready_and_talking(1s);
}

TEST_F(Strangers, StrangersWithoutAProofGetTheReasonAndAreClosed) {
  start(0, kRanks);
  come(1, "stranger", 0, R"({"rank":1,"nranks":4,"proof":"none"})");
  come(1, "stranger", 0, "[[[[");
  network_.run_for(100ms);
  for (const Stranger& stranger : strangers_) EXPECT_TRUE(stranger.heard_reason());
  come(5000, "stranger", 0, R"({"rank":1,"nranks":4,"proof":"none"})");
  network_.run_for(10ms);
  EXPECT_LE(connected(), 2 * kPlaces);
  network_.run_for(2s);
  EXPECT_EQ(connected(), 0U);
  EXPECT_EQ(talkers_[0].turned_away(), 5002U);
  expect_ready_and_talking(1s);
}

}  // namespace
}  // namespace tributary::client
