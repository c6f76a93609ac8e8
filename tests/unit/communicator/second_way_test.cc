// Two ranks that are connected over devices. A device fails, or a connection breaks, after each event of the same run.
// This covers every border between frames and every point within them, in either direction and from either side.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "client/communicator/communicator.h"
#include "tests/simulation/cluster/two_ways.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using simulation::device_of;
using simulation::TwoWays;
using transport::Duration;
using transport::SimNetwork;

constexpr std::uint32_t kRanks = 2;
constexpr std::array<std::size_t, 7> kSizes{1, 4096, 0, 300'000, 64, 5000, 262'144};

enum class Loss : std::uint8_t { cut, device_of_0, device_of_1, both_devices, silent_device_of_1, unnoticed_by_1 };

std::byte expected(std::uint32_t from, std::size_t message, std::size_t at) {
  return static_cast<std::byte>(from * 101 + message * 31 + at * 7 + at / 251);
}

/// One rank. It sends one message of each size, and receives one of each size, all at once.
class Talker {
 public:
  Talker(SimNetwork& network, std::uint32_t rank, std::uint32_t early_bytes_max)
      : network_(network), host_("rank" + std::to_string(rank)), rank_(rank), ways_(network, host_, early_bytes_max) {
    CommunicatorSettings settings;
    settings.rank = rank;
    settings.nranks = kRanks;
    settings.id.root = {"rank0", 7000};
    settings.listen = {host_, 0};
    settings.advertised_host = host_;
    settings.host_id = host_;
    settings.timeout = 20s;
    communicator_ = std::make_unique<Communicator>(ways_, nullptr, settings);
    if (rank == 0) listener_ = std::move(*network.transport(host_).listen({host_, 7000}, *communicator_));
    const auto turn = [this] {
      ways_.poll(Duration::zero());
      communicator_->tick(network_.now());
      network_.wake_at(host_, network_.now() + 20ms);
    };
    network.on_due(host_, turn);
    network.on_due(device_of(host_), turn);
    network.wake_at(host_, network.now() + 1us);
    communicator_->start([this](const Status& status) {
      ASSERT_TRUE(status) << status.error().message;
      talk();
    });
  }
  [[nodiscard]] bool done() const { return sent_ == kSizes.size() && received_ == kSizes.size(); }
  [[nodiscard]] const std::optional<Error>& error() const { return communicator_->error(); }
  [[nodiscard]] bool connected() const { return communicator_->info().links > 0; }
  void lose_device(bool silent) { ways_.lose_device({device_of("rank0"), device_of("rank1")}, silent); }

 private:
  struct Piece {
    std::vector<std::byte> memory;
    std::uint32_t ended = 0;
  };
  void talk() {
    const std::uint32_t other = 1 - rank_;
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      Piece& out = pieces_.emplace_back(Piece{std::vector<std::byte>(kSizes[i])});
      for (std::size_t at = 0; at < kSizes[i]; ++at) out.memory[at] = expected(rank_, i, at);
      communicator_->send_message(other, {.sends = true,
                                          .send = out.memory.data(),
                                          .count = kSizes[i],
                                          .dtype = DType::uint8,
                                          .on_done = [this, &out](const Status& status) {
                                            EXPECT_TRUE(status);
                                            EXPECT_EQ(++out.ended, 1U);
                                            ++sent_;
                                            // The buffer belongs to the caller again: overwrite it, so that the test
                                            // detects a late reader.
                                            std::ranges::fill(out.memory, std::byte{0xA5});
                                          }});
    }
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      Piece& in = pieces_.emplace_back(Piece{std::vector<std::byte>(kSizes[i], std::byte{0x5A})});
      communicator_->receive_message(other, {.recv = in.memory.data(),
                                             .count = kSizes[i],
                                             .dtype = DType::uint8,
                                             .on_done = [this, other, &in, i](const Status& status) {
                                               EXPECT_TRUE(status);
                                               EXPECT_EQ(++in.ended, 1U);
                                               EXPECT_EQ(i, received_);
                                               ++received_;
                                               std::size_t wrong = 0;
                                               for (std::size_t at = 0; at < in.memory.size(); ++at)
                                                 wrong += in.memory[at] != expected(other, i, at) ? 1U : 0U;
                                               EXPECT_EQ(wrong, 0U) << "of message " << i;
                                             }});
    }
  }

  SimNetwork& network_;
  const std::string host_;
  const std::uint32_t rank_;
  TwoWays ways_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<transport::Listener> listener_;
  std::deque<Piece> pieces_;
  std::size_t sent_ = 0, received_ = 0;
};

struct Outcome {
  bool ended_before = false;
  std::uint64_t half_written = 0, lost_after_sent = 0;
};

void talk_and_lose(Loss loss, std::uint64_t after, std::uint32_t early_percent, Outcome& outcome) {
  transport::SimSettings settings{.seed = 5, .split_percent = 80, .early_sent_percent = early_percent};
  SimNetwork network(settings);
  const auto early = early_percent > 0 ? static_cast<std::uint32_t>(settings.early_sent_bytes_max) : 0U;
  std::deque<Talker> talkers;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) talkers.emplace_back(network, rank, early);
  const auto done = [&] { return std::ranges::all_of(talkers, &Talker::done); };
  for (std::uint64_t step = 0; step < after && !done(); ++step) network.step();
  outcome.ended_before = done();
  switch (loss) {
    case Loss::cut:
      network.cut(device_of("rank0"), device_of("rank1"));
      break;
    case Loss::device_of_0:
      talkers[0].lose_device(false);
      break;
    case Loss::device_of_1:
    case Loss::silent_device_of_1:
      talkers[1].lose_device(loss == Loss::silent_device_of_1);
      break;
    case Loss::unnoticed_by_1:  // rank 1 is the rank that must connect again
      if (talkers[0].connected() && talkers[1].connected()) network.pause(device_of("rank1"));
      network.cut(device_of("rank0"), device_of("rank1"));
      break;
    case Loss::both_devices:
      talkers[0].lose_device(false);
      talkers[1].lose_device(false);
      break;
  }
  const auto lost_at = network.now();
  ASSERT_TRUE(network.run_until(done, network.now() + 60s)) << "after " << after << " events";
  // A device that does not answer costs a connection at most one limit of the first way.
  EXPECT_LT(network.now() - lost_at, 6s);
  for (const Talker& talker : talkers) ASSERT_FALSE(talker.error()) << talker.error()->message;
  outcome.half_written += network.statistics().half_written;
  outcome.lost_after_sent += network.statistics().lost_after_sent;
}

class SecondWay : public testing::TestWithParam<std::tuple<Loss, std::uint32_t>> {};

TEST_P(SecondWay, TakesOverAfterEveryEvent) {
  const auto [loss, early_percent] = GetParam();
  Outcome outcome;
  std::uint64_t after = 0;
  for (; !outcome.ended_before; ++after) {
    talk_and_lose(loss, after, early_percent, outcome);
    if (HasFailure()) FAIL() << "after " << after << " events";
  }
  EXPECT_GT(after, 30U);
  EXPECT_GT(outcome.half_written, 0U) << "no payload was cut in two";
  if (early_percent > 0) {
    EXPECT_GT(outcome.lost_after_sent, 0U) << "no frame was lost that had been reported as sent";
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, SecondWay,
                         testing::Combine(testing::Values(Loss::cut, Loss::device_of_0, Loss::device_of_1,
                                                          Loss::both_devices, Loss::silent_device_of_1,
                                                          Loss::unnoticed_by_1),
                                          testing::Values(0U, 50U, 100U)));

// Acknowledgements bound the memory for sent frames, even if all frames go in one direction.
TEST(SentFrames, KeepsCopiesUntilTheyAreTakenAndNoLonger) {
  SentFrames sent(16);
  std::array<std::byte, 8> small{};
  std::array<std::byte, 64> large{};
  for (std::uint64_t i = 0; i < 100; ++i) {
    small.fill(static_cast<std::byte>(i));
    sent.handed_over({.header = {}, .payload = small, .cookie = i});
    EXPECT_EQ(sent.sent(), i);
  }
  EXPECT_EQ(sent.size(), 100U);
  EXPECT_TRUE(sent.taken_low_bits(90));
  EXPECT_EQ(sent.size(), 10U);
  EXPECT_FALSE(sent.taken(101)) << "frame 101 was never sent";
  sent.handed_over({.header = {}, .payload = large, .cookie = 100});
  EXPECT_TRUE(sent.taken(101));
  EXPECT_EQ(sent.size(), 1U) << "the channel may still read the frame";
  EXPECT_EQ(sent.sent(), 100U);
  EXPECT_EQ(sent.size(), 0U);
  small.fill(std::byte{7});
  sent.handed_over({.header = {}, .payload = small, .cookie = 101});
  EXPECT_EQ(sent.sent(), 101U);
  small.fill(std::byte{0});
  sent.handed_over({.header = {}, .payload = large, .cookie = 102});
  sent.handed_over({.header = {}, .payload = large, .cookie = 103});
  std::deque<PeerFrame> pending;
  pending.push_back({.header = {}, .payload = large, .cookie = 104});
  EXPECT_FALSE(SentFrames(0).go_on_from(1, pending));
  const auto told = sent.go_on_from(101, pending);
  ASSERT_TRUE(told);
  EXPECT_TRUE(told->empty());
  ASSERT_EQ(pending.size(), 4U);
  EXPECT_TRUE(pending[0].told);
  EXPECT_EQ(pending[0].payload[0], std::byte{7});
  EXPECT_FALSE(pending[1].told);
  EXPECT_EQ(pending[3].cookie, 104U);
}

TEST(SentFrames, ReportsFramesThatTheOtherSideHasAndTheCallerDoesNotKnow) {
  SentFrames sent(0);
  std::array<std::byte, 64> large{};
  for (std::uint64_t i = 0; i < 5; ++i) sent.handed_over({.header = {}, .payload = large, .cookie = i});
  EXPECT_EQ(sent.sent(), 0U);
  std::deque<PeerFrame> pending;
  const auto told = sent.go_on_from(3, pending);
  ASSERT_TRUE(told);
  EXPECT_EQ(*told, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(pending.size(), 2U);
}

TEST(SentFrames, RefusesACountThatWouldLoseAFrame) {
  SentFrames sent(0);
  std::array<std::byte, 64> large{};
  for (std::uint64_t i = 0; i < 2; ++i) sent.handed_over({.header = {}, .payload = large, .cookie = i});
  EXPECT_EQ(sent.sent(), 0U);  // so the other side has the frame
  std::deque<PeerFrame> pending;
  EXPECT_FALSE(sent.go_on_from(0, pending));
}

}  // namespace
}  // namespace tributary::client
