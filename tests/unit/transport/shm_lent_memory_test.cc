// Payloads that the other side reads in the sender's memory: the lines that travel, and when the memory is free again.
// A hostile owner or reader harms only itself.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>
#include <thread>

#include "tests/unit/transport/shm_pair.h"
#include "transport/shm/region_line.h"
#include "tributary/transport/shared_memory.h"
#include "tributary/transport/shm.h"

namespace tributary::transport::test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPayload = 20'000;

/// A block of this process's memory that other processes may map.
class Block {
 public:
  explicit Block(std::size_t bytes) : bytes_(allocate_shared(bytes).value(), bytes) {}
  ~Block() { EXPECT_TRUE(free_shared(bytes_.data())); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> fill(std::size_t offset, std::size_t size, std::uint64_t seed) const {
    const auto there = bytes_.subspan(offset, size);
    std::ranges::copy(pattern(size, seed), there.begin());
    return there;
  }

 private:
  std::span<std::byte> bytes_;
};

/// A handler that takes contributions without a copy, and keeps them.
class Keeper final : public ChannelHandler {
 public:
  bool takes_in_place(Channel&, const FrameHeader& header) override { return header.type == FrameType::contribution; }
  Placement on_header(Channel&, const FrameHeader& header) override {
    place.resize(header.payload_bytes);
    return Accept{place};
  }
  void on_frame(Channel&, const FrameHeader&, std::span<std::byte> payload) override { kept.push_back(payload); }
  void on_closed(Channel&, const Error& error) override { closed = error; }
  std::vector<std::span<std::byte>> kept;
  std::vector<std::byte> place;
  std::optional<Error> closed;
};

std::size_t mapped_blocks() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) count += line.contains("tributary-memory") ? 1U : 0U;
  return count;
}

OwnedDescriptor sealed_file(std::size_t bytes, int seals = F_SEAL_GROW | F_SEAL_SHRINK) {
  OwnedDescriptor file(::memfd_create("tributary-memory-of-a-stranger", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

}  // namespace

class ShmLentMemoryTest : public ShmPair {
 protected:
  using ShmPair::ShmPair;
  std::unique_ptr<KeptMemory> lend(ShmTransport& transport, const Block& block) {
    return transport.lend(block.bytes().data(), find_shared(block.bytes()).value());
  }
  /// Makes the other side map the block: the first payload from it, which is still copied, announces the block.
  void make_known(const Block& block) {
    const std::size_t before = server().frames.size();
    const std::uint64_t mapped = server_.statistics().regions_mapped;
    ASSERT_TRUE(peer_.channel->send(header_of(1000), block.bytes().first(kPayload), 1000));
    ASSERT_TRUE(
        run_until([&] { return server().frames.size() > before && server_.statistics().regions_mapped > mapped; }));
    run_until([] { return false; }, 2ms);  // in this time its answer comes
    peer_.sent.clear();
  }
};

// ---- the lines that travel

TEST_F(ShmLentMemoryTest, PayloadsAreReadInPlaceOnceTheOtherSideHasMappedThem) {
  const Block block(1 << 20);
  connect();
  const auto lent = lend(client_, block);
  make_known(block);
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto payload = block.fill(i * 24'000, kPayload + i, i);
    ASSERT_TRUE(peer_.channel->send(header_of(i), payload, i));
    peer_.channel->send_copy(header_of(i + 100), pattern(5000, i));  // copied frames keep their order, too
  }
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 81 && peer_.sent.size() == 40; }));
  for (std::uint64_t i = 0; i < 40; ++i) {
    EXPECT_EQ(server().frames[1 + 2 * i].payload, pattern(kPayload + i, i));
    EXPECT_EQ(server().frames[2 + 2 * i].payload, pattern(5000, i));
    EXPECT_EQ(peer_.sent[i], i);
  }
  EXPECT_EQ(client_.statistics().frames_named, 40U);
}

TEST_F(ShmLentMemoryTest, TwoSidesThatLendReadEachOthersPayloadsInPlace) {
  const Block ours(1 << 20), theirs(1 << 20);
  connect();
  const auto lent_by_client = lend(client_, ours);
  const auto lent_by_server = lend(server_, theirs);
  make_known(ours);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const std::size_t sent_there = server().sent.size(), sent_here = peer_.sent.size();
    ASSERT_TRUE(peer_.channel->send(header_of(i), ours.fill(0, kPayload, i), i));
    ASSERT_TRUE(server().channel->send(header_of(i), theirs.fill(4096, kPayload, i + 7), i));
    ASSERT_TRUE(run_until([&] { return server().sent.size() > sent_there && peer_.sent.size() > sent_here; }));
    ASSERT_EQ(server().frames.back().payload, pattern(kPayload, i));
    ASSERT_EQ(peer_.frames.back().payload, pattern(kPayload, i + 7));
  }
  EXPECT_EQ(client_.statistics().frames_named, 50U);
  EXPECT_GE(server_.statistics().frames_named, 48U);
}

TEST_F(ShmLentMemoryTest, IsNotSentBeforeTheOtherSideHasGivenItBack) {
  const Block block(1 << 20);
  Keeper keeper;
  acceptor_.prepare = [](Peer&) {};
  connect();
  const auto channel = client_.connect(listener_->local(), keeper, 5s);
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 2; }));
  const auto lent = lend(server_, block);
  ASSERT_TRUE(newest().channel->send(header_of(0), block.fill(0, kPayload, 1), 0));
  ASSERT_TRUE(run_until([&] { return keeper.kept.size() == 1 && client_.statistics().regions_mapped == 1; }));
  channel->give_back(keeper.kept.back());
  ASSERT_TRUE(run_until([&] { return newest().sent.size() == 1; }));
  run_until([] { return false; }, 2ms);
  keeper.kept.clear();
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(newest().channel->send(header_of(i), block.fill(i * kPayload / 8 * 8, kPayload, i), i));
  }
  const auto unlent = pattern(10, 1);  // not lent, but borrowed until the transport has sent it
  ASSERT_TRUE(newest().channel->send(header_of(4), unlent, 4));
  ASSERT_TRUE(run_until([&] { return keeper.kept.size() == 4; }));
  run_until([] { return false; }, 10ms);
  EXPECT_EQ(newest().sent.size(), 1U) << "the other side still reads the payloads";
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::ranges::equal(keeper.kept[i], pattern(kPayload, i + 1)));
  channel->give_back(keeper.kept[1]);
  run_until([] { return false; }, 10ms);
  EXPECT_EQ(newest().sent.size(), 1U) << "on_sent keeps the order of the sends";
  channel->give_back(keeper.kept[0]);
  ASSERT_TRUE(run_until([&] { return newest().sent.size() == 3; }));
  channel->give_back(keeper.kept[2]);
  ASSERT_TRUE(run_until([&] { return newest().sent.size() == 5; }));
}

TEST_F(ShmLentMemoryTest, IsUnmappedWhenItIsTakenBackAndWhenTheConnectionEnds) {
  connect();
  {
    const Block block(1 << 20);
    auto lent = lend(client_, block);
    make_known(block);
    EXPECT_EQ(mapped_blocks(), 2U) << "the block is mapped here and by the other side";
    lent.reset();
    ASSERT_TRUE(run_until([&] { return mapped_blocks() == 1; }));
  }
  const Block other(1 << 20);
  const auto lent = lend(client_, other);
  make_known(other);
  EXPECT_EQ(mapped_blocks(), 2U);
  ASSERT_TRUE(peer_.channel->send(header_of(0), other.fill(0, kPayload, 5), 0));
  ASSERT_TRUE(run_until([&] {
    return !server().frames.empty() && server().frames.back().payload == pattern(kPayload, 5);
  })) << "the new range has the place of the earlier one";
  peer_.channel.reset();
  ASSERT_TRUE(run_until([&] { return server().closed.has_value(); }));
  acceptor_.peers.clear();
  EXPECT_EQ(mapped_blocks(), 1U);
}

TEST_F(ShmLentMemoryTest, AFlushWaitsUntilTheOtherSideHasReadAll) {
  const Block block(1 << 20);
  connect();
  const auto lent = lend(client_, block);
  make_known(block);
  bool ready = false;
  server().place = [&](Channel&, const FrameHeader& header) -> Placement {
    if (!ready) return NotYet{};
    return server().accept(header);
  };
  ASSERT_TRUE(peer_.channel->send(header_of(0), block.fill(0, kPayload, 3), 0));
  peer_.channel->close_after_flush(10s);
  run_until([] { return false; }, 20ms);
  EXPECT_FALSE(peer_.channel->closed());
  ready = true;
  server().channel->resume();
  ASSERT_TRUE(run_until([&] { return peer_.channel->closed() && server().closed.has_value(); }));
  EXPECT_EQ(server().frames.back().payload, pattern(kPayload, 3));
}

// ---- bytes that must not be taken for a payload

TEST_F(ShmLentMemoryTest, APayloadOfAClosedConnectionIsVoid) {
  const Block block(1 << 20);
  connect();
  const auto lent = lend(client_, block);
  make_known(block);
  const std::size_t before = server().frames.size();
  ASSERT_TRUE(peer_.channel->send(header_of(0), block.fill(0, kPayload, 3), 0));
  client_.poll({});  // the client has written the frame, and the other side has not read it yet
  peer_.channel->close();
  static_cast<void>(block.fill(0, kPayload, 4));  // the memory belongs to its owner again
  ASSERT_TRUE(run_until([&] { return server().closed.has_value(); }));
  EXPECT_EQ(server().closed->code, Errc::peer_gone);
  EXPECT_EQ(server().frames.size(), before);
}

TEST_F(ShmLentMemoryTest, AReaderOfAClosedConnectionLearnsOfTheEndAtOnce) {
  const Block block(1 << 20);
  Keeper keeper;
  connect();
  const auto channel = client_.connect(listener_->local(), keeper, 5s);
  ASSERT_TRUE(run_until([&] { return acceptor_.peers.size() == 2; }));
  const auto lent = lend(server_, block);
  ASSERT_TRUE(newest().channel->send(header_of(0), block.fill(0, kPayload, 1), 0));
  ASSERT_TRUE(run_until([&] { return keeper.kept.size() == 1; }));
  channel->give_back(keeper.kept.back());
  run_until([] { return false; }, 5ms);
  ASSERT_TRUE(newest().channel->send(header_of(1), block.fill(0, kPayload, 2), 1));
  ASSERT_TRUE(run_until([&] { return keeper.kept.size() == 2; }));
  ASSERT_EQ(server_.statistics().frames_named, 1U);
  EXPECT_FALSE(channel->closed());
  newest().channel->close();
  channel->give_back(keeper.kept.back());
  EXPECT_TRUE(channel->closed()) << "the channel closes before the reader uses the bytes";
  ASSERT_TRUE(run_until([&] { return keeper.closed.has_value(); }));
  EXPECT_EQ(keeper.closed->code, Errc::peer_gone);
}

// ---- strangers

namespace {

/// A stranger that sends lines about memory.
struct Liar : ShmStranger {
  using ShmStranger::ShmStranger;
  void write_line(const RegionLine& line) {
    std::memcpy(memory->outgoing() + at, &line, sizeof line);
    at += sizeof line;
    memory->mine().written.store(at);
    ring();
  }
  void write_header(FrameHeader header, std::size_t bytes) {
    header.payload_bytes = static_cast<std::uint32_t>(bytes);
    encode(header, std::span<std::byte, kFrameHeaderBytes>(memory->outgoing() + at, kFrameHeaderBytes));
    at += kFrameHeaderBytes;
    memory->mine().written.store(at);
    ring();
  }
  void pass(int file) { (void)send_message(socket.get(), std::as_bytes(std::span("\1", 1)), file); }
  /// Returns the listener's answer with this number; each has 64 bytes.
  [[nodiscard]] std::optional<RegionWord> answer(std::size_t number) const {
    if (memory->theirs().written.load() < (number + 1) * kLineBytes) return std::nullopt;
    RegionLine line;
    std::memcpy(&line, memory->incoming() + number * kLineBytes, sizeof line);
    return line.magic == kRegionMagic ? std::optional(line.word) : std::nullopt;
  }
  std::uint64_t at = 0;
};

RegionLine told(std::uint64_t offset, std::uint64_t bytes, std::uint32_t place = 0, std::uint32_t generation = 1) {
  return {.word = RegionWord::told, .place = place, .generation = generation, .offset = offset, .bytes = bytes};
}
RegionLine payload_at(std::uint64_t offset, std::uint64_t bytes, std::uint32_t place = 0,
                      std::uint32_t generation = 1) {
  return {.word = RegionWord::payload, .place = place, .generation = generation, .offset = offset, .bytes = bytes};
}

}  // namespace

TEST_F(ShmLentMemoryTest, RefusesFilesThatCouldBecomeABusError) {
  struct Case {
    const char* what;
    OwnedDescriptor file;
    RegionLine line;
  };
  std::vector<Case> cases;
  cases.push_back({"not sealed", sealed_file(65536, F_SEAL_GROW), told(0, 65536)});
  cases.push_back({"too short", sealed_file(65536), told(0, 65537)});
  cases.push_back({"beyond its end", sealed_file(65536), told(65536, 1)});
  cases.push_back({"an offset that wraps", sealed_file(65536), told(~std::uint64_t{0} - 4095, 8192)});
  cases.push_back({"nothing", sealed_file(65536), told(0, 0)});
  cases.push_back({"no such place", sealed_file(65536), told(0, 65536, kRegionPlaces)});
  cases.push_back({"no generation", sealed_file(65536), told(0, 65536, 0, 0)});
  cases.push_back({"more than one connection maps", sealed_file(65536), told(0, ShmSettings{}.map_bytes_max + 1)});
  cases.push_back({"no memory", OwnedDescriptor(::open("/dev/zero", O_RDWR | O_CLOEXEC)), told(0, 65536)});
  for (const Case& c : cases) {
    Liar liar(name());
    let_in(liar);
    liar.pass(c.file.get());
    liar.write_line(c.line);
    ASSERT_TRUE(run_until([&] { return liar.answer(0).has_value(); })) << c.what;
    EXPECT_EQ(*liar.answer(0), RegionWord::refused) << c.what;
    liar.write_line(payload_at(0, 4096));
    liar.write_header(header_of(0), 4096);
    ASSERT_TRUE(run_until([&] { return newest().closed.has_value(); })) << c.what;
    EXPECT_EQ(newest().closed->code, Errc::corrupt) << c.what;
  }
  EXPECT_EQ(server_.statistics().regions_mapped, 0U);
}

TEST_F(ShmLentMemoryTest, ALineWithoutItsDescriptorIsRefused) {
  Liar liar(name());
  let_in(liar);
  liar.write_line(told(0, 65536));
  ASSERT_TRUE(run_until([&] { return liar.answer(0).has_value(); }));
  EXPECT_EQ(*liar.answer(0), RegionWord::refused);
}

TEST_F(ShmLentMemoryTest, ClosesOnPayloadsOutsideOfTheirRange) {
  for (const RegionLine& line : {payload_at(61'441, 4096), payload_at(~std::uint64_t{0} - 100, 4096),
                                 payload_at(0, 4096, 1), payload_at(0, 4096, kRegionPlaces), payload_at(0, 4096, 0, 2),
                                 payload_at(0, 8192), payload_at(0, 4096, ~std::uint32_t{0}, ~std::uint32_t{0})}) {
    const OwnedDescriptor file = sealed_file(65536);
    Liar liar(name());
    let_in(liar);
    liar.pass(file.get());
    liar.write_line(told(0, 65536));
    ASSERT_TRUE(run_until([&] { return liar.answer(0) == RegionWord::mapped; }));
    liar.write_line(line);
    liar.write_header(header_of(0), 4096);  // the line before this one says another length
    ASSERT_TRUE(run_until([&] { return newest().closed.has_value(); }));
    EXPECT_EQ(newest().closed->code, Errc::corrupt);
    EXPECT_TRUE(newest().frames.empty());
  }
}

TEST_F(ShmLentMemoryTest, ClosesOnUnexpectedMessages) {
  for (const auto word : {RegionWord::mapped, RegionWord::refused, static_cast<RegionWord>(6), RegionWord{}}) {
    Liar liar(name());
    let_in(liar);
    liar.write_line({.word = word, .generation = 1});
    ASSERT_TRUE(run_until([&] { return newest().closed.has_value(); }));
    EXPECT_EQ(newest().closed->code, Errc::corrupt);
  }
  Liar liar(name());
  let_in(liar);
  liar.memory->mine().payloads_read.store(1);  // a lie: it has read no payload
  newest().channel->send_copy(header_of(0), {});
  run_until([] { return false; }, 5ms);
  EXPECT_FALSE(newest().closed.has_value()) << "the value of these bytes does not matter";
}

TEST_F(ShmLentMemoryTest, ClosesOnMorePayloadsReadThanWereNamed) {
  const Block block(1 << 20);
  const auto lent = lend(server_, block);
  Liar liar(name());
  let_in(liar);
  ASSERT_TRUE(newest().channel->send(header_of(0), block.bytes().first(kPayload), 0));
  ASSERT_TRUE(run_until([&] { return liar.answer(0) == RegionWord::told; }));
  liar.write_line({.word = RegionWord::mapped, .place = 0, .generation = 1});
  run_until([] { return false; }, 5ms);
  ASSERT_TRUE(newest().channel->send(header_of(1), block.bytes().first(kPayload), 1));
  ASSERT_TRUE(run_until([&] { return server_.statistics().frames_named == 1; }));
  liar.memory->mine().payloads_read.store(2);
  liar.ring();
  ASSERT_TRUE(run_until([&] { return newest().closed.has_value(); }));
  EXPECT_EQ(newest().closed->code, Errc::corrupt);
}

TEST_F(ShmLentMemoryTest, AReaderCanNeitherWriteNorShortenNorEmptyTheMemoryOfResults) {
  auto results = ReadableMemory::make(1 << 20).value();
  std::ranges::copy(pattern(4096, 1), results.bytes().begin());
  const SharedRange range = results.range().value();
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, range.file.get(), 0), MAP_FAILED);
  EXPECT_LT(::pwrite(range.file.get(), "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(range.file.get(), 4096), 0);
  EXPECT_NE(::fallocate(range.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  void* const read = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, range.file.get(), 0);
  ASSERT_NE(read, MAP_FAILED);
  EXPECT_NE(::mprotect(read, 4096, PROT_READ | PROT_WRITE), 0);
  EXPECT_NE(::madvise(read, 4096, MADV_REMOVE), 0);
  const std::string again = "/proc/self/fd/" + std::to_string(range.file.get());
  const OwnedDescriptor reopened(::open(again.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reopened.get(), 0), MAP_FAILED);
  results.bytes()[0] = std::byte{42};
  EXPECT_EQ(*static_cast<std::byte*>(read), std::byte{42});
  ::munmap(read, 4096);
}

TEST_F(ShmLentMemoryTest, HugePagesAreMappedOnlyOnceNobodyCanTakeThemAway) {
  constexpr std::size_t kHuge = 2 << 20;
  OwnedDescriptor file(::memfd_create("tributary-memory-huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!file.is_open() || ::ftruncate(file.get(), kHuge) != 0 || ::fallocate(file.get(), 0, 0, kHuge) != 0)
    GTEST_SKIP() << "no huge page is set aside";
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
  void* const own = ::mmap(nullptr, kHuge, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(own, MAP_FAILED);
  using Access = ForeignMapping::Access;
  EXPECT_FALSE(ForeignMapping::map(file, 0, kHuge, Access::read, false));
  EXPECT_EQ(::madvise(own, kHuge, MADV_REMOVE), 0) << "unsealed huge pages can be taken away";
  keep_huge_pages({.file = OwnedDescriptor(::dup(file.get())), .offset = 0, .bytes = kHuge});
  const auto mapping = ForeignMapping::map(file, 0, kHuge, Access::read, false);
  ASSERT_TRUE(mapping) << mapping.error().message;
  EXPECT_NE(::madvise(own, kHuge, MADV_REMOVE), 0);
  EXPECT_NE(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kHuge), 0);
  static_cast<std::byte*>(own)[5] = std::byte{7};
  EXPECT_EQ(mapping->bytes()[5], std::byte{7});
  ::munmap(own, kHuge);
}

TEST_F(ShmLentMemoryTest, HolesUnderAReaderAreZerosAndNoHarm) {
  const OwnedDescriptor file = sealed_file(1 << 20);
  Liar liar(name());
  let_in(liar);
  liar.pass(file.get());
  liar.write_line(told(0, 1 << 20));
  ASSERT_TRUE(run_until([&] { return liar.answer(0) == RegionWord::mapped; }));
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
  std::atomic<bool> stop = false;
  std::jthread puncher([&] {
    while (!stop) {
      (void)::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
      (void)::pwrite(file.get(), "x", 1, 5000);
    }
  });
  for (int i = 0; i < 100; ++i) {
    liar.write_line(payload_at(0, 1 << 20));
    liar.write_header(header_of(0), 1 << 20);
    ASSERT_TRUE(run_until([&] { return newest().frames.size() == static_cast<std::size_t>(i) + 1; }));
    newest().frames[static_cast<std::size_t>(i)].payload.clear();
  }
  stop = true;
  EXPECT_FALSE(newest().closed.has_value());
}

TEST_F(ShmLentMemoryTest, RandomMessagesAndFilesHarmNoOtherConnection) {
  const Block block(1 << 20);
  connect();
  const auto lent = lend(client_, block);
  make_known(block);
  std::mt19937_64 random(20261122);
  for (int round = 0; round < 150; ++round) {
    Liar liar(name());
    let_in(liar);
    const OwnedDescriptor file = sealed_file(1 + random() % 200'000, random() % 4 == 0 ? F_SEAL_GROW : F_SEAL_SHRINK);
    for (int word = 0; word < 12 && !newest().closed; ++word) {
      if (random() % 2 == 0) liar.pass(random() % 5 == 0 ? liar.socket.get() : file.get());
      liar.write_line({.word = static_cast<RegionWord>(random() % 7),
                       .place = static_cast<std::uint32_t>(random() % (kRegionPlaces + 2)),
                       .generation = static_cast<std::uint32_t>(random() % 3),
                       .offset = random() >> (random() % 64),
                       .bytes = random() >> (random() % 64)});
      if (random() % 2 == 0) liar.write_header(header_of(0), random() % 70'000);
      liar.memory->mine().payloads_read.store(random() % 3);
      liar.memory->mine().withdrawn.store(static_cast<std::uint32_t>(random() % 2));
      server_.poll({});
    }
    const std::size_t before = server().frames.size();
    ASSERT_TRUE(peer_.channel->send(header_of(0), block.fill(0, kPayload, static_cast<std::uint64_t>(round)), 0));
    ASSERT_TRUE(run_until([&] { return server().frames.size() == before + 1; }));
    ASSERT_EQ(server().frames.back().payload, pattern(kPayload, static_cast<std::uint64_t>(round)));
  }
  EXPECT_FALSE(peer_.closed.has_value());
  acceptor_.peers.resize(1);
  EXPECT_TRUE(run_until([&] { return server_.statistics().connections == 1; }));
  EXPECT_EQ(mapped_blocks(), 2U) << "the strangers' memory is not mapped any more";
}

// ---- bounds

class ShmLittleLentMemoryTest : public ShmLentMemoryTest {
 protected:
  ShmLittleLentMemoryTest() : ShmLentMemoryTest(ShmSettings{.map_bytes_max = 1 << 20}) {}
};

TEST_F(ShmLittleLentMemoryTest, PayloadsBeyondTheBoundAreCopied) {
  const Block fits(768 << 10), more(768 << 10);
  connect();
  auto first = lend(client_, fits);
  make_known(fits);
  const auto second = lend(client_, more);
  ASSERT_TRUE(peer_.channel->send(header_of(0), more.fill(0, kPayload, 1), 0));
  ASSERT_TRUE(run_until([&] { return server_.statistics().regions_refused == 1; }));
  ASSERT_TRUE(peer_.channel->send(header_of(1), more.fill(kPayload, kPayload, 2), 1));
  ASSERT_TRUE(peer_.channel->send(header_of(2), fits.fill(0, kPayload, 3), 2));
  ASSERT_TRUE(run_until([&] { return server().frames.size() == 4; }));
  EXPECT_EQ(server().frames[2].payload, pattern(kPayload, 2));
  EXPECT_EQ(server().frames[3].payload, pattern(kPayload, 3));
  EXPECT_EQ(client_.statistics().frames_named, 1U);
}

TEST_F(ShmLittleLentMemoryTest, PayloadsOfAProcessThatLendsAgainAndAgainAreCopiedInTheEnd) {
  const Block block(1 << 20);
  connect();
  for (int i = 0; i < 80; ++i) {
    const std::size_t before = server().frames.size();
    const std::uint64_t answers = server_.statistics().regions_mapped + server_.statistics().regions_refused;
    const auto lent = lend(client_, block);
    ASSERT_TRUE(peer_.channel->send(header_of(0), block.bytes().first(kPayload), 0));
    ASSERT_TRUE(run_until([&] {
      return server().frames.size() == before + 1 && peer_.sent.size() == static_cast<std::size_t>(i) + 1 &&
             server_.statistics().regions_mapped + server_.statistics().regions_refused == answers + 1;
    }));
    run_until([] { return false; }, 1ms);
  }
  EXPECT_EQ(server_.statistics().regions_mapped, 64U);
  EXPECT_EQ(server_.statistics().regions_refused, 16U);
}

}  // namespace tributary::transport::test
