// Payloads that the other side writes: payloads of expected frames go directly to their places, other payloads go into
// the room for them, and some fit neither.
#include <map>

#include "tests/rdma/transport/verbs_world.h"
#include "tests/unit/transport/peer.h"

namespace tributary::transport::test {
namespace {

constexpr std::size_t kBytes = 32U << 10;
constexpr std::uint32_t kCells = 4;

/// A handler that takes contributions without a copy, if the test says so.
class Taker : public Peer {
 public:
  bool takes_in_place(Channel&, const FrameHeader&) override { return takes; }
  void on_frame(Channel& from, const FrameHeader& header, std::span<std::byte> payload) override {
    if (takes) kept.emplace_back(payload);
    last = payload.data();
    Peer::on_frame(from, header, payload);
  }
  bool takes = false;
  const std::byte* last = nullptr;
  std::deque<std::span<const std::byte>> kept;
};

class TakerAcceptor final : public Acceptor {
 public:
  ChannelHandler* on_accept(std::unique_ptr<Channel> channel) override {
    taker.channel = std::move(channel);
    return &taker;
  }
  Taker taker;
};

struct Mode {
  const char* name;
  std::uint32_t windows_max;
  std::uint32_t queue_pairs = 1;
  bool extended = true;  // true: the library has extended posting
};

class Places : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
    const auto make = [](const std::string& host) {
      VerbsSettings settings;
      settings.windows_max = GetParam().windows_max;
      settings.queue_pairs = GetParam().queue_pairs;
      settings.extended_posting = GetParam().extended;
      settings.bind_address = host;
      return VerbsTransport::create(settings).value();
    };
    server_ = make(rdma_hosts().front());
    client_ = make(rdma_hosts().back());
    auto listener = server_->listen({rdma_hosts().front(), 0}, acceptor_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
    client_peer_.channel = client_->connect(listener_->local(), client_peer_, std::chrono::seconds(30));
    ASSERT_TRUE(run_until([&] { return client_peer_.opened && taker().channel != nullptr; }));
    settle();
  }
  /// Checks that every right of a peer has ended with the channels.
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_FALSE(client_peer_.closed) << client_peer_.closed->message;
    EXPECT_FALSE(taker().closed) << taker().closed->message;
    client_peer_.channel.reset();
    taker().channel.reset();
    for (const auto& figures : {server_->statistics(), client_->statistics()}) {
      EXPECT_EQ(figures.memory_regions + figures.memory_windows + figures.queue_pairs, 0U);
      const bool known = std::getenv("RDMA_VIRTUAL") != nullptr;  // the virtual machine's library has the extended
                                                                  // calls
      EXPECT_EQ(figures.queue_pairs_extended > 0, GetParam().extended && (known || figures.queue_pairs_extended > 0));
    }
  }

  [[nodiscard]] Taker& taker() { return acceptor_.taker; }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (Clock::now() > limit) return false;
      if (server_->poll({}) + client_->poll({}) == 0) server_->poll(std::chrono::microseconds(100));
    }
    return true;
  }
  /// Lets all frames under way arrive.
  void settle() {
    for (const TimePoint end = Clock::now() + std::chrono::milliseconds(50); Clock::now() < end;) {
      server_->poll(std::chrono::milliseconds(1));
      client_->poll(std::chrono::milliseconds(1));
    }
  }
  /// Waits until `to` has read all records that `from` has sent so far.
  void arrives(Peer& from, Peer& to) {
    const std::size_t before = to.frames.size();
    send(from, header_of(1000), {});
    ASSERT_TRUE(run_until([&] { return to.frames.size() > before; }));
    to.frames.pop_back();
  }
  void send(Peer& from, const FrameHeader& header, std::span<const std::byte> payload) {
    ASSERT_TRUE(from.channel->send(header, payload, header.sequence));
  }
  [[nodiscard]] FrameHeader expected(std::uint64_t sequence, std::size_t bytes = kBytes) {
    FrameHeader header = header_of(sequence, FrameType::result);
    header.payload_bytes = static_cast<std::uint32_t>(bytes);
    return header;
  }
  /// Lets the client name the place for this result, and the handler accept it.
  void expect(std::uint64_t sequence, std::span<std::byte> place) {
    const FrameHeader header = expected(sequence, place.size());
    places_[sequence] = place;
    client_peer_.place = [this](Channel&, const FrameHeader& of) -> Placement {
      return Accept{places_.at(of.sequence)};
    };
    client_peer_.channel->expect(header, place);
  }

  std::map<std::uint64_t, std::span<std::byte>> places_;
  std::unique_ptr<VerbsTransport> server_, client_;
  TakerAcceptor acceptor_;
  std::unique_ptr<Listener> listener_;
  Peer client_peer_;
};

TEST_P(Places, AnExpectedFrameIsWrittenToItsPlaceAndNothingIsCopied) {
  std::vector<std::byte> memory(8 * kBytes, std::byte{0xEE});
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 8; ++i) payloads.push_back(pattern(kBytes, i));
  for (std::uint64_t i = 0; i < 8; ++i) expect(i, std::span(memory).subspan(i * kBytes, kBytes));
  arrives(client_peer_, taker());
  for (std::uint64_t i = 0; i < 8; ++i) send(taker(), header_of(i, FrameType::result), payloads[i]);
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 8 && taker().sent.size() == 8; }));
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(client_peer_.frames[i].header.sequence, i);
    EXPECT_TRUE(std::ranges::equal(std::span(memory).subspan(i * kBytes, kBytes), payloads[i]));
  }
  EXPECT_EQ(server_->statistics().bytes_written, 8 * kBytes);
  EXPECT_EQ(server_->statistics().bytes_copied + client_->statistics().bytes_copied, 0U);
  EXPECT_EQ(client_->statistics().bytes_fetched, 0U);
}

TEST_P(Places, MoreThanTheNumberOfPlacesComeOneAfterTheOther) {
  std::vector<std::byte> memory(kBytes);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const auto payload = pattern(kBytes, i);
    expect(i, memory);
    send(client_peer_, header_of(i), {});  // carries the record of the place
    ASSERT_TRUE(run_until([&] { return taker().frames.size() == i + 1; }));
    send(taker(), header_of(i, FrameType::result), payload);
    ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == i + 1; }));
    ASSERT_EQ(memory, payload);
  }
  EXPECT_EQ(server_->statistics().bytes_written, 200 * kBytes);
}

TEST_P(Places, AFrameThatWasSentBeforeItsPlaceWasKnownComesInAnotherWay) {
  std::vector<std::byte> memory(kBytes);
  const auto payload = pattern(kBytes, 3);
  client_peer_.place = [](Channel&, const FrameHeader&) -> Placement { return NotYet{}; };
  send(taker(), header_of(5, FrameType::result), payload);
  ASSERT_TRUE(run_until([&] { return client_peer_.headers == 1; }));
  const std::size_t regions = client_->statistics().memory_regions;
  expect(5, memory);
  arrives(client_peer_, taker());  // the reader names the place too late
  EXPECT_EQ(client_->statistics().memory_regions, regions + 1);
  client_peer_.place = [&](Channel&, const FrameHeader&) -> Placement {
    EXPECT_EQ(client_->statistics().memory_regions, regions) << "the peer's right to write there has ended";
    return Accept{memory};
  };
  client_peer_.channel->resume();
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 1; }));
  EXPECT_EQ(memory, payload);
  EXPECT_EQ(client_->statistics().bytes_fetched, kBytes);
  // Expects the next frame, whose place may have the number of the withdrawn place.
  expect(6, memory);
  arrives(client_peer_, taker());
  send(taker(), header_of(6, FrameType::result), payload);
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 2; }));
  EXPECT_EQ(server_->statistics().bytes_written, kBytes);
}

TEST_P(Places, AFrameThatDiffersFromTheExpectedOneIsNotWrittenToThePlace) {
  std::vector<std::byte> memory(kBytes, std::byte{0xEE}), other(kBytes);
  const auto payload = pattern(kBytes, 4);
  expect(7, memory);
  arrives(client_peer_, taker());
  places_[7] = other;
  FrameHeader header = header_of(7, FrameType::result);
  header.operation = 99;
  send(taker(), header, payload);
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 1; }));
  EXPECT_EQ(other, payload);
  EXPECT_EQ(memory, std::vector<std::byte>(kBytes, std::byte{0xEE}));
  EXPECT_EQ(server_->statistics().bytes_written, 0U);
}

TEST_P(Places, AHandlerMayWaitOrChooseAnotherPlaceLater) {
  std::vector<std::byte> memory(kBytes), other(kBytes);
  const auto payload = pattern(kBytes, 5);
  expect(8, memory);
  arrives(client_peer_, taker());
  client_peer_.place = [](Channel&, const FrameHeader&) -> Placement { return NotYet{}; };
  send(taker(), header_of(8, FrameType::result), payload);
  ASSERT_TRUE(run_until([&] { return client_peer_.headers == 1; }));
  client_peer_.place = [&](Channel&, const FrameHeader&) -> Placement { return Accept{other}; };
  client_peer_.channel->resume();
  ASSERT_TRUE(run_until([&] { return client_peer_.frames.size() == 1; }));
  EXPECT_EQ(other, payload);
  EXPECT_EQ(client_->statistics().bytes_copied, kBytes);
}

TEST_P(Places, RoomIsReadWhereItWasWrittenAndUsedAgainWhenGivenBack) {
  taker().takes = true;
  taker().channel->make_room(kCells, kBytes);
  arrives(taker(), client_peer_);
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 50; ++i) payloads.push_back(pattern(i % 5 == 4 ? 100 : kBytes - 64 * (i % 3), i));
  std::uint64_t next = 0;
  // Sends two frames later than expected, and in the wrong order.
  taker().when_frame = [&](Channel& of, const Received&) {
    if (taker().kept.size() < 3) return;
    of.give_back(taker().kept[1]);
    of.give_back(taker().kept[0]);
    taker().kept.erase(taker().kept.begin(), taker().kept.begin() + 2);
  };
  taker().place = [&](Channel&, const FrameHeader& header) { return taker().accept(header); };
  const auto feed = [&] {
    if (next < 50) send(client_peer_, header_of(next), payloads[next]), ++next;
  };
  client_peer_.when_sent = [&](std::uint64_t) { feed(); };
  feed();
  feed();
  ASSERT_TRUE(run_until([&] { return taker().frames.size() == 50 && client_peer_.sent.size() == 50; }));
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(taker().frames[i].header.sequence, i);
    EXPECT_TRUE(taker().frames[i].payload == payloads[i]) << "frame " << i;
  }
  EXPECT_GE(server_->statistics().frames_in_place, 10U);
  EXPECT_EQ(client_->statistics().bytes_copied, 10U * 100) << "only payloads that travel in messages are copied";
  taker().kept.clear();
}

// The receiver frees cells in the order in which they were written, so a cell in use delays the cells behind it.
TEST_P(Places, AHeldPayloadIsNotOverwritten) {
  taker().takes = true;
  taker().channel->make_room(kCells, kBytes);
  arrives(taker(), client_peer_);
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 2 * kCells; ++i) payloads.push_back(pattern(kBytes, i));
  for (std::uint64_t i = 0; i < kCells; ++i) send(client_peer_, header_of(i), payloads[i]);
  ASSERT_TRUE(run_until([&] { return taker().frames.size() == kCells; }));
  for (std::uint64_t i = 1; i < kCells; ++i) taker().channel->give_back(taker().kept[i]);
  arrives(taker(), client_peer_);
  for (std::uint64_t i = kCells; i < 2 * kCells; ++i) send(client_peer_, header_of(i), payloads[i]);
  ASSERT_TRUE(run_until([&] { return taker().frames.size() == 2 * kCells; }));
  EXPECT_TRUE(std::ranges::equal(taker().kept[0], payloads[0]));
  EXPECT_EQ(server_->statistics().frames_in_place, kCells);
  taker().channel->give_back(taker().kept[0]);
  arrives(taker(), client_peer_);
  send(client_peer_, header_of(50), payloads[3]);
  ASSERT_TRUE(run_until([&] { return taker().frames.size() == 2 * kCells + 1; }));
  EXPECT_EQ(server_->statistics().frames_in_place, kCells + 1);
}

TEST_P(Places, APayloadWithoutRoomIsFetched) {
  taker().takes = true;
  taker().channel->make_room(kCells, kBytes);
  arrives(taker(), client_peer_);
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < kCells + 3; ++i) payloads.push_back(pattern(kBytes, i));
  for (std::uint64_t i = 0; i < kCells + 3; ++i) send(client_peer_, header_of(i), payloads[i]);
  const auto large = pattern(2 * kBytes, 77);
  send(client_peer_, header_of(50), large);
  ASSERT_TRUE(run_until([&] { return taker().frames.size() == kCells + 4; }));
  EXPECT_EQ(server_->statistics().frames_in_place, kCells) << "no cell was given back";
  EXPECT_EQ(server_->statistics().bytes_fetched, 5 * kBytes);
  EXPECT_EQ(taker().frames.back().payload, large);
  for (std::uint64_t i = 0; i < kCells; ++i) EXPECT_TRUE(std::ranges::equal(taker().kept[i], payloads[i]));
  for (std::uint64_t i = 0; i < kCells; ++i) taker().channel->give_back(taker().kept[i]);
  arrives(taker(), client_peer_);
  send(client_peer_, header_of(51), payloads[0]);
  ASSERT_TRUE(run_until([&] { return taker().frames.size() == kCells + 5; }));
  EXPECT_EQ(server_->statistics().frames_in_place, kCells + 1);
}

TEST_P(Places, APayloadThatDoesNotStayInTheRoomIsCopiedOut) {
  taker().channel->make_room(kCells, kBytes);
  arrives(taker(), client_peer_);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto payload = pattern(kBytes, i);
    send(client_peer_, header_of(i), payload);
    ASSERT_TRUE(run_until([&] { return taker().frames.size() == i + 1 && client_peer_.sent.size() == i + 1; }));
    EXPECT_EQ(taker().frames.back().payload, payload);
  }
  // If the sender sends a payload before it knows that a cell is free again, the receiver fetches the payload.
  EXPECT_EQ(server_->statistics().bytes_copied + server_->statistics().bytes_fetched, 20 * kBytes);
  EXPECT_GE(server_->statistics().bytes_copied, 10 * kBytes);
  EXPECT_EQ(client_->statistics().bytes_copied, 0U);
}

TEST_P(Places, APayloadTakenInPlaceStaysReadableAfterTheChannelsEnd) {
  taker().takes = true;
  taker().channel->make_room(kCells, kBytes);
  arrives(taker(), client_peer_);
  const auto payload = pattern(kBytes, 9);
  send(client_peer_, header_of(1), payload);
  ASSERT_TRUE(run_until([&] { return taker().frames.size() == 1; }));
  taker().channel->close();
  EXPECT_TRUE(std::ranges::equal(taker().kept[0], payload));
  taker().channel->give_back(taker().kept[0]);
  ASSERT_TRUE(run_until([&] { return client_peer_.closed.has_value(); }));
  client_peer_.closed.reset();
}

INSTANTIATE_TEST_SUITE_P(Verbs, Places,
                         testing::Values(Mode{"memory_windows", 64}, Mode{"registrations", 0},
                                         Mode{"four_queue_pairs", 64, 4}, Mode{"registrations_four_queue_pairs", 0, 4},
                                         Mode{"ibv_post_send", 64, 2, false}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace tributary::transport::test
