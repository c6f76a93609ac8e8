// A peer that breaks the rules uses the keys that it got, or could guess. It can access its own payloads while they are
// offered to it, and no other memory. Each attempt ends the peer's connection, and harms no other connection.
#include <map>
#include <set>

#include "tests/rdma/transport/raw_peer.h"
#include "tests/rdma/transport/verbs_world.h"
#include "tests/unit/transport/peer.h"

namespace {

/// Every registration that the device's library has made in this process. These keys are the most harmful guesses for a
/// peer.
std::map<ibv_mr*, ibv_mr>& registrations() {
  static std::map<ibv_mr*, ibv_mr> all;
  return all;
}
ibv_mr* note(ibv_mr* region) {
  if (region != nullptr) registrations()[region] = *region;
  return region;
}

}  // namespace

extern "C" {  // the linker replaces the library's functions with these (--wrap)
ibv_mr* __real_ibv_reg_mr(ibv_pd* domain, void* at, std::size_t bytes, int access);
ibv_mr* __real_ibv_reg_mr_iova2(ibv_pd* domain, void* at, std::size_t bytes, std::uint64_t iova, unsigned access);
int __real_ibv_dereg_mr(ibv_mr* region);
ibv_mr* __wrap_ibv_reg_mr(ibv_pd* domain, void* at, std::size_t bytes, int access) {
  return note(__real_ibv_reg_mr(domain, at, bytes, access));
}
ibv_mr* __wrap_ibv_reg_mr_iova2(ibv_pd* domain, void* at, std::size_t bytes, std::uint64_t iova, unsigned access) {
  return note(__real_ibv_reg_mr_iova2(domain, at, bytes, iova, access));
}
int __wrap_ibv_dereg_mr(ibv_mr* region) {
  registrations().erase(region);
  return __real_ibv_dereg_mr(region);
}
}

namespace tributary::transport::test {
namespace {

constexpr std::uint64_t kGroup = 77;  // the group of header_of()
constexpr std::size_t kSecretBytes = 64U << 10;

struct Mode {
  const char* name;
  std::uint32_t windows_max;
};

class Hostile : public testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    if (rdma_hosts().empty()) GTEST_SKIP() << "RDMA_HOSTS names no address: tests/rdma/rdma-vm sets it";
    VerbsSettings settings;
    settings.windows_max = GetParam().windows_max;
    settings.bind_address = rdma_hosts().front();
    server_ = VerbsTransport::create(settings).value();
    auto listener = server_->listen({rdma_hosts().front(), 0}, acceptor_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
    honest_ = VerbsTransport::create({.bind_address = rdma_hosts().back()}).value();
    honest_peer_.channel = honest_->connect(listener_->local(), honest_peer_, std::chrono::seconds(30));
    ASSERT_TRUE(honest_peer_.channel->send(header_of(1), {}, 1));
    ASSERT_TRUE(run_until([&] { return !acceptor_.peers.empty() && acceptor_.peers[0]->frames.size() == 1; }));
    queue_pairs_ = server_->statistics().queue_pairs;
  }
  void TearDown() override {
    if (HasFatalFailure() || IsSkipped()) return;
    expect_honest_works();
  }

  void pump() {
    server_->poll({});
    honest_->poll({});
  }
  [[nodiscard]] bool run_until(const std::function<bool()>& done) {
    const TimePoint limit = Clock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (Clock::now() > limit) return false;
      pump();
    }
    return true;
  }

  /// A hand-made peer, and the server's end of its connection.
  struct Pair {
    std::unique_ptr<RawPeer> raw;
    Peer* server = nullptr;
  };
  Pair connect(std::uint32_t receives = RawPeer::kDepth) {
    Pair pair;
    const std::size_t before = acceptor_.peers.size();
    pair.raw = std::make_unique<RawPeer>(listener_->local(), rdma_hosts().back(), kGroup, [this] { pump(); }, receives);
    EXPECT_TRUE(pair.raw->connected());
    pair.raw->send_frame(header_of(1), {});
    EXPECT_TRUE(run_until([&] { return acceptor_.peers.size() > before && !acceptor_.peers[before]->frames.empty(); }));
    if (acceptor_.peers.size() > before) pair.server = acceptor_.peers[before].get();
    return pair;
  }
  /// Lets the server send the peer this payload, by an offer to fetch it.
  RawPeer::Offer offer(Pair& pair, std::span<const std::byte> secret) {
    EXPECT_TRUE(pair.server->channel->send(header_of(2, FrameType::result), secret, 2));
    const auto offered = pair.raw->next_offer();
    EXPECT_TRUE(offered);
    return offered.value_or(RawPeer::Offer{});
  }

  /// Makes room for four of the peer's payloads, or a place for one frame, and returns the message in which the server
  /// tells the peer of it.
  RawPeer::Told room(Pair& pair) {
    pair.server->channel->make_room(4, kSecretBytes);
    return told(pair, verbs::RecordKind::room);
  }
  RawPeer::Told place(Pair& pair, std::span<std::byte> memory) {
    FrameHeader header = header_of(5);
    header.payload_bytes = static_cast<std::uint32_t>(memory.size());
    pair.server->place = [memory](Channel&, const FrameHeader&) -> Placement { return Accept{memory}; };
    pair.server->channel->expect(header, memory);
    return told(pair, verbs::RecordKind::place);
  }
  RawPeer::Told told(Pair& pair, verbs::RecordKind kind) {
    const auto told = pair.raw->next_told();
    EXPECT_TRUE(told.has_value());
    const auto what = told.value_or(RawPeer::Told{});
    EXPECT_EQ(what.kind, kind);
    return what;
  }
  void expect_refused(Pair& pair, ibv_wc_status status) {
    EXPECT_EQ(status, IBV_WC_REM_ACCESS_ERR) << ibv_wc_status_str(status);
    EXPECT_TRUE(run_until([&] { return pair.server->closed.has_value(); })) << "the server's end must notice";
    expect_honest_works();
  }
  void expect_honest_works() {
    const std::size_t before = honest_peer_.frames.size();
    const auto payload = pattern(kSecretBytes, ++rounds_);
    ASSERT_TRUE(acceptor_.peers[0]->channel->send(header_of(rounds_, FrameType::result), payload, rounds_));
    ASSERT_TRUE(run_until([&] { return honest_peer_.frames.size() > before; }));
    EXPECT_EQ(honest_peer_.frames.back().payload, payload);
    EXPECT_FALSE(honest_peer_.closed);
    ASSERT_TRUE(run_until([&] { return acceptor_.peers[0]->sent.size() == rounds_; }));
  }
  [[nodiscard]] bool has_windows() const { return server_->statistics().memory_windows > 0; }

  std::unique_ptr<VerbsTransport> server_, honest_;
  PeerAcceptor acceptor_;
  std::unique_ptr<Listener> listener_;
  Peer honest_peer_;
  std::uint64_t rounds_ = 0;
  std::size_t queue_pairs_ = 0;
};

TEST_P(Hostile, ReadsAPayloadWhileThePayloadIsOfferedToIt) {
  Pair pair = connect();
  const auto secret = pattern(kSecretBytes, 5);
  const auto offered = offer(pair, secret);
  ASSERT_EQ(offered.bytes, kSecretBytes);
  EXPECT_EQ(pair.raw->read(offered.where.address, offered.where.key, kSecretBytes), IBV_WC_SUCCESS);
  EXPECT_TRUE(std::ranges::equal(pair.raw->scratch().first(kSecretBytes), secret));
  EXPECT_EQ(has_windows(), GetParam().windows_max > 0) << "does this device have no memory windows?";
  pair.raw->acknowledge(1);
  EXPECT_TRUE(run_until([&] { return !pair.server->sent.empty(); }));
}

TEST_P(Hostile, CannotReadASiblingsPayload) {
  Pair sibling = connect();
  Pair thief = connect();
  const auto secret = pattern(kSecretBytes, 6);
  const auto offered = offer(sibling, secret);
  expect_refused(thief, thief.raw->read(offered.where.address, offered.where.key, 64));
  EXPECT_EQ(sibling.raw->read(offered.where.address, offered.where.key, kSecretBytes), IBV_WC_SUCCESS);
  EXPECT_FALSE(sibling.server->closed);
}

TEST_P(Hostile, CannotReadBesideItsPayload) {
  const auto memory = pattern(3 * kSecretBytes, 7);
  const auto secret = std::span(memory).subspan(kSecretBytes, kSecretBytes);
  const auto kept = server_->keep_registered(memory);
  for (const std::int64_t offset : {std::int64_t{-64}, std::int64_t{kSecretBytes}, std::int64_t{kSecretBytes - 63}}) {
    Pair thief = connect();
    const auto offered = offer(thief, secret);
    expect_refused(thief,
                   thief.raw->read(offered.where.address + static_cast<std::uint64_t>(offset), offered.where.key, 64));
  }
}

TEST_P(Hostile, CannotReadAPayloadThatItHasConfirmed) {
  Pair thief = connect();
  const auto secret = pattern(kSecretBytes, 8);
  const auto kept = server_->keep_registered(secret);
  const auto offered = offer(thief, secret);
  thief.raw->acknowledge(1);
  ASSERT_TRUE(run_until([&] { return !thief.server->sent.empty(); }));
  expect_refused(thief, thief.raw->read(offered.where.address, offered.where.key, 64));
}

TEST_P(Hostile, CannotReadAPayloadOnceItsNextFrameIsServed) {
  Pair thief = connect();
  const auto secret = pattern(kSecretBytes, 9);
  const auto offered = offer(thief, secret);
  ibv_wc_status status = IBV_WC_SUCCESS;
  bool tried = false;
  // The engine writes to the memory of a result when the next contribution comes, so the key must be invalid before
  // that.
  thief.server->when_frame = [&](Channel&, const Received&) { tried = true; };
  thief.raw->send_frame(header_of(3), {}, 1);
  ASSERT_TRUE(run_until([&] { return tried; }));
  status = thief.raw->read(offered.where.address, offered.where.key, 64);
  expect_refused(thief, status);
}

TEST_P(Hostile, CannotWriteIntoAPayloadThatItMayRead) {
  const auto secret = pattern(kSecretBytes, 10);
  const auto before = secret;
  Pair thief = connect();
  const auto offered = offer(thief, secret);
  expect_refused(thief, thief.raw->write(offered.where.address, offered.where.key, 64));
  EXPECT_EQ(secret, before);
}

TEST_P(Hostile, CannotUseTheKeyOfAnyRegistration) {
  Pair sibling = connect();
  const auto secret = pattern(kSecretBytes, 11);
  const auto kept = server_->keep_registered(secret);
  ASSERT_NE(offer(sibling, secret).bytes, 0U);  // the server still offers this payload
  ibv_context* const device = [&] {
    for (const auto& [region, copy] : registrations()) {
      if (copy.addr == secret.data()) return copy.context;
    }
    return static_cast<ibv_context*>(nullptr);
  }();
  ASSERT_NE(device, nullptr);
  std::vector<ibv_mr> all;
  for (const auto& [region, copy] : registrations()) {
    if (copy.context == device) all.push_back(copy);
  }
  ASSERT_GE(all.size(), 3U) << "there are registrations for the messages of two connections and for the secret";
  for (const ibv_mr& region : all) {
    for (const bool writes : {false, true}) {
      Pair thief = connect();
      const auto at = reinterpret_cast<std::uintptr_t>(region.addr);
      expect_refused(thief, writes ? thief.raw->write(at, region.rkey, 64) : thief.raw->read(at, region.rkey, 64));
      if (HasFailure()) return;
    }
  }
}

TEST_P(Hostile, CannotUseAGuessedKey) {
  Pair sibling = connect();
  const auto secret = pattern(kSecretBytes, 12);
  const auto offered = offer(sibling, secret);
  for (const std::uint32_t difference : {1U, 2U, 0xFFU, 0x100U, 0x200U, 0x101U}) {
    Pair thief = connect();
    expect_refused(thief, thief.raw->read(offered.where.address, offered.where.key + difference, 64));
  }
}

// ---- what the peer may write

TEST_P(Hostile, OnlyItsTrueWritesIntoItsRoomCount) {
  Pair pair = connect();
  const auto told = room(pair);
  const auto payload = pattern(kSecretBytes, 20);
  for (std::uint32_t number = 0; number < 2; ++number) {
    const std::uint32_t message = pair.raw->make_cell(header_of(10 + number), payload);
    const std::uint64_t cell = told.where.address + number * verbs::cell_bytes_for(kSecretBytes);
    EXPECT_EQ(
        pair.raw->write_and_tell(cell + verbs::kCellMessageBytes - message, told.where.key, message + kSecretBytes,
                                 verbs::CellImmediate{.message_bytes = message, .cell = number}),
        IBV_WC_SUCCESS);
  }
  ASSERT_TRUE(run_until([&] { return pair.server->frames.size() == 3; }));
  EXPECT_EQ(pair.server->frames.back().payload, payload);
}

TEST_P(Hostile, ImpossibleFiguresAboutItsRoomEndTheConnection) {
  const auto payload = pattern(kSecretBytes, 21);
  struct Lie {
    std::uint32_t message_bytes, number;
    std::size_t bytes;
  };
  for (const Lie& lie : {Lie{96, 1, 96 + 64}, Lie{0, 0, 64}, Lie{8, 0, 64}, Lie{96, 0, 64}, Lie{96, 0, 96 + 128},
                         Lie{1024, 0, 1024 + 64}, Lie{96, 0, kSecretBytes + 192}}) {
    Pair thief = connect();
    const auto told = room(thief);
    const std::uint32_t message = thief.raw->make_cell(header_of(10), std::span(payload).first(64));
    ASSERT_EQ(message, 96U);
    // Puts the message into the right place, so that it has no other fault.
    const std::size_t at =
        verbs::kCellMessageBytes - std::min<std::size_t>(lie.message_bytes, verbs::kCellMessageBytes);
    static_cast<void>(
        thief.raw->write_and_tell(told.where.address + at, told.where.key, lie.bytes,
                                  verbs::CellImmediate{.message_bytes = lie.message_bytes, .cell = lie.number}));
    EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); })) << lie.message_bytes << " " << lie.number;
    EXPECT_EQ(thief.server->frames.size(), 1U);
    expect_honest_works();
  }
}

// The lengths agree, but the payload reaches into the next cell.
TEST_P(Hostile, IsClosedWhenItsPayloadIsLargerThanItsCell) {
  Pair thief = connect();
  const auto told = room(thief);
  const auto payload = pattern(kSecretBytes + 64, 22);
  const std::uint32_t message = thief.raw->make_cell(header_of(10), payload);
  static_cast<void>(thief.raw->write_and_tell(told.where.address + verbs::kCellMessageBytes - message, told.where.key,
                                              message + payload.size(),
                                              verbs::CellImmediate{.message_bytes = message, .cell = 0}));
  EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); }));
  EXPECT_EQ(thief.server->frames.size(), 1U);
}

TEST_P(Hostile, IsClosedWhenItNamesACellOutOfTurn) {
  const auto payload = pattern(kSecretBytes, 25);
  for (const std::uint32_t number : {1U, 4U, 0xFFFFU}) {
    Pair thief = connect();
    const auto told = room(thief);
    const std::uint32_t message = thief.raw->make_cell(header_of(10), payload);
    static_cast<void>(thief.raw->write_and_tell(told.where.address + verbs::kCellMessageBytes - message, told.where.key,
                                                message + kSecretBytes,
                                                verbs::CellImmediate{.message_bytes = message, .cell = number}));
    EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); })) << number;
    EXPECT_EQ(thief.server->frames.size(), 1U);
  }
}

TEST_P(Hostile, IsClosedWhenItWritesACellThatIsStillRead) {
  const auto payload = pattern(kSecretBytes, 23);
  Pair thief = connect();
  const auto told = room(thief);
  thief.server->place = [](Channel&, const FrameHeader&) -> Placement { return NotYet{}; };
  for (std::uint32_t number = 0; number < 5; ++number) {
    ASSERT_FALSE(thief.server->closed.has_value()) << number;
    const std::uint32_t message = thief.raw->make_cell(header_of(10 + number), payload);
    const std::uint64_t cell = told.where.address + number % 4 * verbs::cell_bytes_for(kSecretBytes);
    static_cast<void>(thief.raw->write_and_tell(cell + verbs::kCellMessageBytes - message, told.where.key,
                                                message + kSecretBytes,
                                                verbs::CellImmediate{.message_bytes = message, .cell = number}));
    for (int i = 0; i < 20; ++i) pump();
  }
  EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); }));
  EXPECT_EQ(thief.server->frames.size(), 1U);
}

TEST_P(Hostile, IsClosedWhenAPayloadComesWithoutItsFrame) {
  Pair thief = connect();
  const auto told = room(thief);
  static_cast<void>(thief.raw->make_cell(header_of(10), pattern(64, 24)));
  constexpr std::uint32_t kMessage = sizeof(verbs::MessagePrefix);
  std::memcpy(thief.raw->scratch().data() + offsetof(verbs::MessagePrefix, bytes), &kMessage, sizeof kMessage);
  static_cast<void>(thief.raw->write_and_tell(told.where.address + verbs::kCellMessageBytes - kMessage, told.where.key,
                                              kMessage + 64,
                                              verbs::CellImmediate{.message_bytes = kMessage, .cell = 0}));
  EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); }));
  EXPECT_EQ(thief.server->frames.size(), 1U);
}

TEST_P(Hostile, CannotWriteBesideItsRoom) {
  for (const std::int64_t offset : {std::int64_t{-64}, std::int64_t{4 * verbs::cell_bytes_for(kSecretBytes)},
                                    std::int64_t{4 * verbs::cell_bytes_for(kSecretBytes) - 63}}) {
    Pair thief = connect();
    const auto told = room(thief);
    expect_refused(thief,
                   thief.raw->write(told.where.address + static_cast<std::uint64_t>(offset), told.where.key, 64));
  }
}

TEST_P(Hostile, CannotWriteIntoASiblingsRoom) {
  Pair sibling = connect();
  Pair thief = connect();
  const auto told = room(sibling);
  const auto own = room(thief);
  ASSERT_NE(told.where.key, own.where.key);
  expect_refused(thief, thief.raw->write(told.where.address, told.where.key, 64));
  Pair other = connect();
  const auto others = room(other);
  expect_refused(other, other.raw->write(told.where.address, others.where.key, 64));
  EXPECT_EQ(sibling.raw->write(told.where.address, told.where.key, 64), IBV_WC_SUCCESS);
  EXPECT_FALSE(sibling.server->closed);
}

TEST_P(Hostile, CannotReadItsRoom) {
  Pair thief = connect();
  const auto told = room(thief);
  expect_refused(thief, thief.raw->read(told.where.address, told.where.key, 64));
}

TEST_P(Hostile, CannotWriteIntoARoomWhoseConnectionHasEnded) {
  Pair sibling = connect();
  const auto told = room(sibling);
  sibling.server->channel->close();
  Pair thief = connect();
  expect_refused(thief, thief.raw->write(told.where.address, told.where.key, 64));
}

TEST_P(Hostile, CannotWriteBesideItsPlace) {
  std::vector<std::byte> memory(3 * kSecretBytes);
  const auto kept = server_->keep_registered(memory);
  for (const std::int64_t offset : {std::int64_t{-64}, std::int64_t{kSecretBytes}, std::int64_t{kSecretBytes - 63}}) {
    Pair thief = connect();
    const auto told = place(thief, std::span(memory).subspan(kSecretBytes, kSecretBytes));
    std::ranges::fill(thief.raw->scratch(), std::byte{0xBA});
    expect_refused(thief,
                   thief.raw->write(told.where.address + static_cast<std::uint64_t>(offset), told.where.key, 64));
    EXPECT_EQ(std::ranges::count(memory, std::byte{0xBA}), 0);
  }
}

TEST_P(Hostile, CannotWriteIntoASiblingsPlaceNorReadItsOwn) {
  std::vector<std::byte> memory(kSecretBytes), own(kSecretBytes);
  Pair sibling = connect();
  Pair thief = connect();
  const auto told = place(sibling, memory);
  ASSERT_NE(place(thief, own).where.key, told.where.key);
  expect_refused(thief, thief.raw->write(told.where.address, told.where.key, 64));
  Pair reader = connect();
  const auto readers = place(reader, own);
  expect_refused(reader, reader.raw->read(readers.where.address, readers.where.key, 64));
}

TEST_P(Hostile, CannotWriteAgainToAPlaceThatItHasReportedAsWritten) {
  std::vector<std::byte> memory(kSecretBytes);
  const auto kept = server_->keep_registered(memory);
  Pair thief = connect();
  const auto told = place(thief, memory);
  bool tried = false;
  // From on_frame on the memory belongs to the application, so the key must be invalid before.
  thief.server->when_frame = [&](Channel&, const Received&) { tried = true; };
  std::ranges::fill(thief.raw->scratch(), std::byte{0x11});
  ASSERT_EQ(thief.raw->write_and_tell(told.where.address, told.where.key, kSecretBytes,
                                      verbs::PlaceImmediate{.place = told.where.number}),
            IBV_WC_SUCCESS);
  ASSERT_TRUE(run_until([&] { return tried; }));
  std::ranges::fill(thief.raw->scratch(), std::byte{0x22});
  expect_refused(thief, thief.raw->write(told.where.address, told.where.key, 64));
  EXPECT_EQ(std::ranges::count(memory, std::byte{0x11}), static_cast<std::ptrdiff_t>(kSecretBytes));
}

TEST_P(Hostile, ImpossibleFiguresAboutPlacesEndTheConnection) {
  std::vector<std::byte> memory(kSecretBytes);
  struct Lie {
    std::uint32_t number, consumed, freed;
    std::size_t bytes;
  };
  for (const Lie& lie : {Lie{1, 0, 0, 64}, Lie{1000, 0, 0, kSecretBytes}, Lie{0, 0, 0, 64},
                         Lie{0, 1000, 0, kSecretBytes}, Lie{0, 0, 1, kSecretBytes}}) {
    Pair thief = connect();
    const auto told = place(thief, memory);
    static_cast<void>(thief.raw->write_and_tell(
        told.where.address, told.where.key, lie.bytes,
        verbs::PlaceImmediate{.place = lie.number, .consumed = lie.consumed, .freed = lie.freed}));
    EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); })) << lie.number << " " << lie.bytes;
    EXPECT_EQ(thief.server->frames.size(), 1U);
    expect_honest_works();
  }
}

TEST_P(Hostile, ImpossibleNumbersOfMessagesEndTheConnection) {
  std::vector<std::byte> memory(kSecretBytes);
  // Tries numbers beyond all receives, with a message and with a write, and a number whose turn has passed.
  for (const std::uint32_t skipped : {32U, 64U, 1000U, static_cast<std::uint32_t>(-1)}) {
    for (const bool writes : {false, true}) {
      Pair thief = connect();
      const auto told = place(thief, memory);
      thief.raw->skip_numbers(skipped);
      if (writes) {
        static_cast<void>(thief.raw->write_and_tell(told.where.address, told.where.key, kSecretBytes,
                                                    verbs::PlaceImmediate{.place = told.where.number}));
      } else {
        thief.raw->send_frame(header_of(2), {});
      }
      EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); })) << skipped << " " << writes;
      EXPECT_EQ(thief.server->frames.size(), 1U);
      expect_honest_works();
    }
  }
}

TEST_P(Hostile, AMessageThatComesTooEarlyWaitsAndNoNumberComesTwice) {
  Pair pair = connect();
  pair.raw->skip_numbers(1);
  pair.raw->send_frame(header_of(3), {});
  for (int i = 0; i < 200; ++i) pump();
  EXPECT_EQ(pair.server->frames.size(), 1U) << "the message before it has not come";
  pair.raw->skip_numbers(static_cast<std::uint32_t>(-2));
  pair.raw->send_frame(header_of(2), {});
  ASSERT_TRUE(run_until([&] { return pair.server->frames.size() == 3; }));
  EXPECT_EQ(pair.server->frames[1].header.sequence, 2U);
  EXPECT_EQ(pair.server->frames[2].header.sequence, 3U);
  Pair thief = connect();
  for (int twice = 0; twice < 2; ++twice) {
    thief.raw->skip_numbers(1);
    thief.raw->send_frame(header_of(3), {});
    thief.raw->skip_numbers(static_cast<std::uint32_t>(-2));
  }
  EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); }));
  EXPECT_EQ(thief.server->frames.size(), 1U);
}

TEST_P(Hostile, CannotUseTheSamePlaceTwice) {
  std::vector<std::byte> memory(kSecretBytes);
  Pair thief = connect();
  const auto told = place(thief, memory);
  const auto word = verbs::PlaceImmediate{.place = told.where.number};
  ASSERT_EQ(thief.raw->write_and_tell(told.where.address, told.where.key, kSecretBytes, word), IBV_WC_SUCCESS);
  ASSERT_TRUE(run_until([&] { return thief.server->frames.size() == 2; }));
  // A write of no bytes needs no key; only its immediate arrives.
  static_cast<void>(thief.raw->write_and_tell(0, 0, 0, word));
  EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); }));
  EXPECT_EQ(thief.server->frames.size(), 2U);
  expect_honest_works();
}

// The peer may write any message to its room.
TEST_P(Hostile, AWriteIntoItsRoomCannotNameAPlaceThatItDoesNotHave) {
  for (const bool used : {false, true}) {
    std::vector<std::byte> memory(kSecretBytes);
    Pair thief = connect();
    const auto its_room = room(thief);
    const auto told = place(thief, memory);
    std::uint32_t number = told.where.number + 1;
    if (used) {
      number = told.where.number;
      ASSERT_EQ(thief.raw->write_and_tell(told.where.address, told.where.key, kSecretBytes,
                                          verbs::PlaceImmediate{.place = number}),
                IBV_WC_SUCCESS);
      ASSERT_TRUE(run_until([&] { return thief.server->frames.size() == 2; }));
    }
    static_cast<void>(thief.raw->write_and_tell(its_room.where.address, its_room.where.key, kSecretBytes,
                                                verbs::PlaceImmediate{.place = number}));
    EXPECT_TRUE(run_until([&] { return thief.server->closed.has_value(); }));
    EXPECT_EQ(thief.server->frames.size(), used ? 2U : 1U);
  }
}

TEST_P(Hostile, CannotGuessTheKeyOfARoomOrAPlace) {
  std::vector<std::byte> memory(kSecretBytes);
  Pair sibling = connect();
  const auto its_room = room(sibling);
  const auto its_place = place(sibling, memory);
  for (const auto& told : {its_room, its_place}) {
    for (const std::uint32_t difference : {1U, 0xFFU, 0x100U, 0x101U}) {
      Pair thief = connect();
      expect_refused(thief, thief.raw->write(told.where.address, told.where.key + difference, 64));
    }
  }
}

// A peer has fewer receives than it says. The device tries again as often as the settings say, and then the connection
// ends.
TEST_P(Hostile, IsClosedWhenItHasPostedFewerReceivesThanItSays) {
  Pair liar = connect(0);
  ASSERT_NE(liar.server, nullptr);
  ASSERT_TRUE(liar.server->channel->send(header_of(2, FrameType::result), {}, 2));
  ASSERT_TRUE(run_until([&] { return liar.server->closed.has_value(); }));
  EXPECT_EQ(liar.server->closed->code, Errc::peer_gone);
  EXPECT_NE(liar.server->closed->message.find("RNR"), std::string::npos) << liar.server->closed->message;
  expect_honest_works();
}

TEST_P(Hostile, LeavesNothingBehindWhenItIsGone) {
  for (int round = 0; round < 3; ++round) {
    Pair thief = connect();
    const auto secret = pattern(kSecretBytes, 13);
    const auto offered = offer(thief, secret);
    expect_refused(thief, thief.raw->write(offered.where.address, offered.where.key, 64));
    thief.raw.reset();
  }
  EXPECT_EQ(server_->statistics().queue_pairs, queue_pairs_);
  expect_honest_works();
}

INSTANTIATE_TEST_SUITE_P(Verbs, Hostile, testing::Values(Mode{"memory_windows", 64}, Mode{"registrations", 0}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace tributary::transport::test
