// Promises of the shared-memory transport beyond the contract: a side that misuses the memory or the socket harms only
// itself, and connections leave no files, memory or descriptors behind.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "tests/unit/transport/allocations.h"
#include "tests/unit/transport/shm_pair.h"
#include "tributary/transport/shm.h"

namespace tributary::transport::test {

using namespace std::chrono_literals;

namespace {

std::size_t open_descriptors() {
  const auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::size_t mapped_rings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.contains("tributary-rings") ? 1U : 0U;
  return count;
}

}  // namespace

using ShmTransportTest = ShmPair;

// ---- the other side's writes to the memory

TEST_F(ShmTransportTest, ClosesOnAnImpossiblePosition) {
  const std::uint64_t ring = ShmSettings{}.ring_bytes;
  for (const std::uint64_t written :
       {std::uint64_t{1}, std::uint64_t{63}, ring + 64, ~std::uint64_t{0}, std::uint64_t{1} << 63U}) {
    ShmStranger stranger(name());
    let_in(stranger);
    stranger.memory->mine().written.store(written);
    ASSERT_TRUE(run_until([&] { return newest().closed.has_value(); })) << written;
    EXPECT_EQ(newest().closed->code, Errc::corrupt);
    EXPECT_TRUE(newest().closed->message.starts_with("a process of this host (")) << newest().closed->message;
    EXPECT_EQ(newest().headers, 0U);
  }
  EXPECT_EQ(server_.statistics().corrupt, 5U);
}

TEST_F(ShmTransportTest, ClosesOnAnAcknowledgementOfUnsentFrames) {
  for (const std::uint64_t read : {std::uint64_t{1}, std::uint64_t{128}, ~std::uint64_t{0} - 63}) {
    ShmStranger stranger(name());
    let_in(stranger);
    stranger.memory->mine().read.store(read);
    const auto payload = pattern(100, 1);
    ASSERT_TRUE(newest().channel->send(header_of(0), payload, 0));
    ASSERT_TRUE(run_until([&] { return newest().closed.has_value(); })) << read;
    EXPECT_EQ(newest().closed->code, Errc::corrupt);
  }
}

TEST_F(ShmTransportTest, ClosesOnGarbageThatIsNoFrame) {
  ShmStranger stranger(name());
  let_in(stranger);
  stranger.write_garbage(3, 0xA5);
  ASSERT_TRUE(run_until([&] { return newest().closed.has_value(); }));
  EXPECT_EQ(newest().closed->code, Errc::corrupt);
}

TEST_F(ShmTransportTest, ReliesOnItsPrivateCopyOfItsPositions) {
  ShmStranger stranger(name());
  let_in(stranger);
  stranger.their_side().written.store(12345);
  stranger.their_side().read.store(~std::uint64_t{0});
  stranger.their_side().asleep.store(77);
  stranger.write(header_of(0));
  ASSERT_TRUE(run_until([&] { return newest().frames.size() == 1; }));
  newest().channel->send_copy(header_of(1), {});
  run_until([&] { return stranger.memory->theirs().written.load() == kFrameHeaderBytes; }, 2s);
  EXPECT_EQ(stranger.memory->theirs().written.load(), kFrameHeaderBytes);
  EXPECT_FALSE(newest().closed.has_value());
}

TEST_F(ShmTransportTest, RandomWritesToTheMemoryHarmNoOtherConnection) {
  connect();
  std::mt19937_64 random(20261121);
  for (int round = 0; round < 60; ++round) {
    ShmStranger stranger(name());
    let_in(stranger);
    stranger.write(header_of(0));
    std::atomic<bool> stop = false;
    std::jthread scribbler([&, seed = random()] {
      std::mt19937_64 own(seed);
      auto* words = reinterpret_cast<std::atomic<std::uint64_t>*>(&stranger.memory->mine());
      while (!stop) {
        const std::uint64_t value = own() >> (own() % 64);
        words[own() % 4].store(own() % 2 == 0 ? value : value / 64 * 64, std::memory_order_relaxed);
        reinterpret_cast<std::atomic<std::uint64_t>*>(stranger.memory->outgoing())[own() % 4096].store(
            own(), std::memory_order_relaxed);
      }
    });
    const auto payload = pattern(3000, 1);
    for (int i = 0; i < 20; ++i) {
      newest().channel->send_copy(header_of(1), payload);
      const std::size_t before = peer_.frames.size();
      server().channel->send_copy(header_of(static_cast<std::uint64_t>(i)), payload);
      ASSERT_TRUE(run_until([&] { return peer_.frames.size() == before + 1; }));
      ASSERT_EQ(peer_.frames.back().payload, payload);
    }
    stop = true;
  }
  EXPECT_FALSE(peer_.closed.has_value());
}

TEST_F(ShmTransportTest, NoProcessCanShortenTheMemoryOrTakeItsPagesAway) {
  ShmStranger stranger(name());
  ASSERT_TRUE(run_until([&] {
    std::byte offer[8];
    OwnedDescriptor descriptor;
    if (receive_message(stranger.socket.get(), offer, &descriptor) != sizeof offer) return false;
    EXPECT_NE(::ftruncate(descriptor.get(), 4096), 0);
    EXPECT_NE(::ftruncate(descriptor.get(), 1 << 30), 0);
    const OwnedDescriptor copy(::dup(descriptor.get()));
    stranger.memory = RingMemory::adopt(std::move(descriptor), ShmSettings{}.ring_bytes).value();
    stranger.say_mapped();
    EXPECT_TRUE(run_until([&] { return stranger.hear_go(); }));
    EXPECT_NE(::fallocate(copy.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, copy.get(), 0), MAP_FAILED);
    return true;
  }));
}

TEST_F(ShmTransportTest, TakesNoMemoryThatIsNotSealedOrTooShort) {
  OwnedDescriptor open(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open.get(), 1 << 21), 0);
  EXPECT_EQ(RingMemory::adopt(OwnedDescriptor(::dup(open.get())), 4096).error().code, Errc::corrupt);
  ASSERT_EQ(::fcntl(open.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
  EXPECT_TRUE(RingMemory::adopt(OwnedDescriptor(::dup(open.get())), 4096));
  EXPECT_EQ(RingMemory::adopt(OwnedDescriptor(::dup(open.get())), 1 << 20).error().code, Errc::corrupt);
  EXPECT_EQ(RingMemory::adopt(OwnedDescriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), 4096).error().code,
            Errc::corrupt);
}

// ---- the other side's use of the socket

TEST_F(ShmTransportTest, ClosesStrangersThatSendOtherBytesOrGo) {
  ShmStranger silent(name());
  ShmStranger wrong(name());
  wrong.say(42);
  {
    const ShmStranger gone(name());
  }
  ASSERT_TRUE(run_until([&] { return server_.statistics().greetings_lost == 2; }));
  EXPECT_EQ(acceptor_.accepted, 0U);
  connect();
}

TEST_F(ShmTransportTest, AFloodOfSilentStrangersKeepsNobodyOut) {
  std::vector<std::unique_ptr<ShmStranger>> silent;
  for (int i = 0; i < 400; ++i) {
    silent.push_back(std::make_unique<ShmStranger>(name()));
    server_.poll({});
  }
  connect();
  EXPECT_LE(server_.statistics().connections, 258U);
  peer_.channel->send_copy(header_of(0), {});
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 1; }));
}

TEST_F(ShmTransportTest, ManyWakeUpsDoNoHarm) {
  ShmStranger stranger(name());
  let_in(stranger);
  for (int i = 0; i < 20'000; ++i) {
    const std::byte bell{1};
    (void)send_message(stranger.socket.get(), std::span(&bell, 1));
    if (i % 100 == 0) server_.poll({});
  }
  stranger.write(header_of(0));
  ASSERT_TRUE(run_until([&] { return newest().frames.size() == 1; }));
  EXPECT_FALSE(newest().closed.has_value());
}

// ---- sleeping

TEST_F(ShmTransportTest, LosesNoFrameThatComesWhileTheOtherSideFallsAsleep) {
  connect();
  constexpr std::uint64_t kRounds = 5000;
  peer_.when_frame = [](Channel& channel, const Received& frame) {
    channel.send_copy(header_of(frame.header.sequence, FrameType::result), frame.payload);
  };
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    while (!stop) client_.poll(5s);
  });
  const TimePoint before = Clock::now();
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    server().channel->send_copy(header_of(i), {});
    while (server().frames.size() <= i) server_.poll(i % 3 == 0 ? Duration::zero() : Duration(30s));
  }
  EXPECT_LT(Clock::now() - before, 30s) << "the thread slept through a wake-up";
  stop = true;
  client_.post([] {});
}

TEST_F(ShmTransportTest, WakesAWriterThatSleepsForRoom) {
  connect();
  const auto payload = pattern(kSegmentBytesMax, 1);
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    while (!stop) server_.poll(5s);
  });
  const TimePoint before = Clock::now();
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(peer_.channel->send(header_of(i), payload, i));
  while (peer_.sent.size() < 50) client_.poll(30s);
  EXPECT_LT(Clock::now() - before, 30s);
  stop = true;
  server_.post([] {});
}

// ---- payloads that stay where they were written

namespace {

class Keeper final : public ChannelHandler {
 public:
  bool takes_in_place(Channel&, const FrameHeader& header) override { return header.type == FrameType::contribution; }
  Placement on_header(Channel&, const FrameHeader& header) override {
    ++copied;
    place.resize(header.payload_bytes);
    return Accept{place};
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte> payload) override {
    sequences.push_back(header.sequence);
    if (payload.data() != place.data()) kept.push_back(payload);
  }
  void on_closed(Channel&, const Error& error) override { closed = error; }
  std::vector<std::uint64_t> sequences;
  std::vector<std::span<std::byte>> kept;
  std::vector<std::byte> place;
  std::size_t copied = 0;
  std::optional<Error> closed;
};

}  // namespace

TEST_F(ShmTransportTest, PayloadsStayWhereTheyWereWrittenUntilTheyAreGivenBack) {
  Keeper keeper;
  connect();
  const auto channel = client_.connect(listener_->local(), keeper, 5s);
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 2; }));
  std::vector<std::vector<std::byte>> payloads;
  for (std::uint64_t i = 0; i < 200; ++i) payloads.push_back(pattern(40'000 + i, i));
  std::uint64_t next = 0;
  std::size_t in_place = 0;
  const auto feed = [&] {
    while (next < payloads.size() && newest().channel->send(header_of(next), payloads[next], next)) ++next;
  };
  feed();
  std::mt19937 random(7);
  ASSERT_TRUE(run_until([&] {
    feed();
    while (!keeper.kept.empty()) {  // gives the payloads back in any order
      std::swap(keeper.kept[random() % keeper.kept.size()], keeper.kept.back());
      const auto payload = keeper.kept.back();
      EXPECT_TRUE(std::ranges::equal(payload, payloads[payload.size() - 40'000])) << payload.size();
      channel->give_back(payload);
      keeper.kept.pop_back();
      ++in_place;
    }
    return keeper.sequences.size() == payloads.size();
  }));
  for (std::uint64_t i = 0; i < payloads.size(); ++i) EXPECT_EQ(keeper.sequences[i], i);
  EXPECT_GT(in_place, 50U) << "payloads stay in place, except at the ring's end or when half of the ring is kept";
  EXPECT_EQ(client_.statistics().frames_in_place, in_place);
}

TEST_F(ShmTransportTest, CopiesPayloadsBeyondTheBoundOfKeptOnes) {
  Keeper keeper;
  connect();
  const auto channel = client_.connect(listener_->local(), keeper, 5s);
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 2; }));
  const auto payload = pattern(60'000, 1);
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(newest().channel->send(header_of(i), payload, i));
  ASSERT_TRUE(run_until([&] { return keeper.sequences.size() >= 8; })) << "kept payloads leave half of the ring free";
  EXPECT_LE(keeper.kept.size(), 4U);
  EXPECT_GE(keeper.copied, 4U);
  for (const auto& kept : keeper.kept) EXPECT_TRUE(std::ranges::equal(kept, payload));
  for (const auto& kept : std::exchange(keeper.kept, {})) channel->give_back(kept);
  ASSERT_TRUE(run_until([&] {
    for (const auto& kept : std::exchange(keeper.kept, {})) channel->give_back(kept);
    return keeper.sequences.size() == 20;
  }));
}

TEST_F(ShmTransportTest, KeptPayloadsOutliveTheDeathOfTheirSender) {
  Keeper keeper;
  connect();
  const auto channel = client_.connect(listener_->local(), keeper, 5s);
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 2; }));
  const auto payload = pattern(60'000, 3);
  ASSERT_TRUE(newest().channel->send(header_of(0), payload, 0));
  ASSERT_TRUE(run_until([&] { return keeper.kept.size() == 1; }));
  acceptor_.peers.pop_back();
  ASSERT_TRUE(run_until([&] { return keeper.closed.has_value(); }));
  EXPECT_TRUE(std::ranges::equal(keeper.kept.front(), payload));
}

// ---- the end

TEST_F(ShmTransportTest, TellsAStalledHandlerOfTheDeathOfAProcessAtOnce) {
  const std::string at = name();
  const pid_t child = ::fork();
  if (child == 0) {  // only uses its own transport, as a forked process may, until the test kills it
    ShmTransport own;
    Peer peer;
    peer.channel = own.connect(parse_endpoint(at).value(), peer, 5s);
    peer.channel->send_copy(header_of(0), pattern(100, 1));
    while (true) own.poll(1s);
  }
  acceptor_.prepare = [](Peer& peer) {
    peer.place = [](Channel&, const FrameHeader&) -> Placement { return NotYet{}; };
  };
  ASSERT_TRUE(run_until([&] { return !acceptor_.peers.empty() && server().headers == 1; }));
  ::kill(child, SIGKILL);
  ASSERT_TRUE(run_until([&] { return server().closed.has_value(); }));
  EXPECT_EQ(server().closed->code, Errc::peer_gone);
  ::waitpid(child, nullptr, 0);
}

TEST_F(ShmTransportTest, AStalledHandlerGetsTheRestOfAnOrderlyEndWhenItAsks) {
  connect();
  bool ready = false;
  server().place = [&](Channel&, const FrameHeader& header) -> Placement {
    if (!ready) return NotYet{};
    return server().accept(header);
  };
  for (std::uint64_t i = 0; i < 3; ++i) peer_.channel->send_copy(header_of(i), pattern(500, i));
  peer_.channel->close_after_flush(5s);
  ASSERT_TRUE(run_until([&] { return peer_.channel->closed() && server().headers == 1; }));
  run_until([] { return false; }, 20ms);
  EXPECT_FALSE(server().closed.has_value());
  ready = true;
  server().channel->resume();
  ASSERT_TRUE(run_until([&] { return server().closed.has_value(); }));
  EXPECT_EQ(server().frames.size(), 3U);
}

TEST_F(ShmTransportTest, LeaksNeitherDescriptorsNorMemory) {
  connect();
  const std::size_t descriptors = open_descriptors();
  const std::size_t rings = mapped_rings();
  EXPECT_EQ(rings, 2U) << "one connection is mapped at both of its ends";
  for (int round = 0; round < 5; ++round) {
    std::vector<std::unique_ptr<Peer>> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Peer>());
      clients.back()->channel = client_.connect(listener_->local(), *clients.back(), 5s);
      if (i % 4 == 0) clients.back()->channel->send_copy(header_of(0), pattern(5000, 1));
      if (i % 4 == 1) clients.back()->channel->close_after_flush(1s);
    }
    run_until([&] { return acceptor_.peers.size() == 21; }, 200ms);
    clients.clear();
    ASSERT_TRUE(run_until([&] {
      acceptor_.peers.resize(1);
      return server_.statistics().connections == 1 && client_.statistics().connections == 1;
    }));
  }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_EQ(mapped_rings(), rings);
}

TEST_F(ShmTransportTest, AllocatesNothingOnceWarm) {
  class Counting : public ChannelHandler {
   public:
    Placement on_header(Channel&, const FrameHeader&) override { return Accept{place}; }
    void on_frame(Channel&, const FrameHeader&, std::span<std::byte>) override { ++received; }
    void on_closed(Channel&, const Error&) override {}
    std::array<std::byte, 64> place{};
    std::size_t received = 0;
  } counting;
  const auto payload = pattern(64, 1);
  const std::unique_ptr<Channel> receiver = client_.connect(listener_->local(), counting, 5s);
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 1; }));
  std::uint64_t allocations = 0;
  for (int round = 0; round < 40; ++round) {
    if (round == 20) allocations = allocations_so_far();
    const std::size_t target = counting.received + 500;
    for (std::uint64_t i = 0; i < 500; ++i) {
      while (!newest().channel->send(header_of(i), payload, i)) server_.poll({});
    }
    while (counting.received < target) {
      server_.poll({});
      client_.poll({});
    }
    newest().sent.clear();
  }
  EXPECT_EQ(allocations_so_far() - allocations, 0U);
}

}  // namespace tributary::transport::test
