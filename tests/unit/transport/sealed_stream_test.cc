// Sealed streams without a network: greetings and records, and bytes between the two sides that neither may believe.
#include "transport/tcp/sealed_stream.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/packet/sealed_keys.h"
#include "tests/unit/transport/peer.h"

namespace tributary::transport {
namespace {

using test::header_of;
using test::pattern;
using test::sealed_keys;
using test::secret_of;
using Greeted = SealedStream::Greeted;
using Bytes = std::vector<std::byte>;

constexpr LinkName kPlace{77, 3, 0, 5};

Bytes taken(SealedStream& from) {
  const auto unsent = from.unsent();
  Bytes bytes(unsent.begin(), unsent.end());
  from.note_sent(bytes.size());
  return bytes;
}

Greeted given(SealedStream& to, std::span<const std::byte> bytes) {
  const auto room = to.greeting_room();
  EXPECT_LE(bytes.size(), room.size());
  std::ranges::copy(bytes, room.begin());
  return to.greet(bytes.size(), "the other side");
}

/// Both ends of one connection, at the place kPlace.
class SealedStreams : public ::testing::TestWithParam<PacketSecurity> {
 protected:
  void start(PacketSecurity level, std::uint8_t client_secret = 6, PacketSecurity least = PacketSecurity::off) {
    client_ = SealedStream::of_client({{kPlace, level}, secret_of(client_secret)}).value();
    listener_ = SealedStream::of_listener(sealed_keys(least));
  }
  void agree() {
    start(GetParam());
    ASSERT_EQ(given(*listener_, taken(*client_)), Greeted::sealed);
    ASSERT_EQ(given(*client_, taken(*listener_)), Greeted::sealed);
  }
  /// Seals one frame with this payload.
  static Bytes sealed(SealedStream& from, const Bytes& payload, std::uint64_t sequence = 1) {
    SendQueue queue;
    queue.push_copy(header_of(sequence), payload);
    Bytes room(1U << 20U);
    const auto filled = from.fill(queue, room, SIZE_MAX);
    EXPECT_TRUE(queue.empty() && !filled.failed);
    EXPECT_EQ(filled.content, kFrameHeaderBytes + payload.size());
    room.resize(filled.bytes);
    return room;
  }
  /// Opens all records. Empty: one of them is not authentic, or none was whole.
  static Bytes opened(SealedStream& by, Bytes records) {
    Bytes content;
    by.begin_opening(records);
    while (by.next() == SealedStream::Next::record) {
      Bytes piece(by.head().content_bytes);
      if (!by.open(piece)) return {};
      content.insert(content.end(), piece.begin(), piece.end());
    }
    by.end_opening();
    return content;
  }
  std::unique_ptr<SealedStream> client_, listener_;
};

INSTANTIATE_TEST_SUITE_P(Levels, SealedStreams,
                         ::testing::Values(PacketSecurity::authenticate, PacketSecurity::encrypt),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST_P(SealedStreams, CarryFramesOfAllLengthsBothWays) {
  agree();
  EXPECT_EQ(client_->link(), (SealedLink{kPlace, GetParam()}));
  EXPECT_EQ(listener_->link(), client_->link());
  for (const std::size_t bytes : {0U, 1U, 3968U, 3969U, 4032U, 4033U, 32768U, 100'000U}) {
    for (const auto& [from, to] : {std::pair(&client_, &listener_), std::pair(&listener_, &client_)}) {
      const Bytes payload = pattern(bytes, bytes);
      const Bytes content = opened(**to, sealed(**from, payload));
      ASSERT_EQ(content.size(), kFrameHeaderBytes + bytes);
      EXPECT_TRUE(std::equal(payload.begin(), payload.end(), content.begin() + kFrameHeaderBytes)) << bytes;
    }
  }
}

TEST_P(SealedStreams, ShowPayloadsOnlyWhereTheyAreNotEncrypted) {
  agree();
  for (const std::size_t bytes : {100U, 20'000U}) {
    const Bytes payload = pattern(bytes, 3);
    const Bytes records = sealed(*client_, payload);
    const auto found = std::search(records.begin(), records.end(), payload.begin(), payload.begin() + 64);
    EXPECT_EQ(found != records.end(), GetParam() == PacketSecurity::authenticate);
  }
}

TEST_P(SealedStreams, ARecordWithAnyBitChangedIsNotAuthentic) {
  for (const std::size_t at : {0U, 4U, 5U, 70U, 99U, 103U, 119U}) {
    agree();
    Bytes records = sealed(*client_, pattern(36, 1));
    ASSERT_EQ(records.size(), 120U);
    records[at] ^= std::byte{1};
    EXPECT_TRUE(opened(*listener_, records).empty()) << at;
  }
}

TEST_P(SealedStreams, ARepeatedMovedOrMissingRecordIsNotAuthentic) {
  agree();
  const Bytes first = sealed(*client_, pattern(36, 1)), second = sealed(*client_, pattern(36, 2));
  EXPECT_TRUE(opened(*listener_, second).empty()) << "the first was left out";
  agree();
  const Bytes again = sealed(*client_, pattern(36, 1));
  EXPECT_FALSE(opened(*listener_, again).empty());
  EXPECT_TRUE(opened(*listener_, again).empty()) << "repeated";
  agree();
  EXPECT_TRUE(opened(*client_, sealed(*client_, pattern(36, 1))).empty()) << "sent back to its sender";
}

TEST_P(SealedStreams, EachConnectionHasItsOwnKeys) {
  agree();
  const Bytes earlier = sealed(*client_, pattern(36, 1));
  agree();
  EXPECT_NE(sealed(*client_, pattern(36, 1)), earlier);
  EXPECT_TRUE(opened(*listener_, earlier).empty());
}

TEST_P(SealedStreams, AClientWithAnotherSecretIsRefused) {
  start(GetParam(), 7);
  EXPECT_EQ(given(*listener_, taken(*client_)), Greeted::refused);
  EXPECT_EQ(listener_->refusal(), RefuseReason::unknown_secret);
  EXPECT_EQ(given(*client_, refusal_of(listener_->refusal())), Greeted::refused);
  EXPECT_NE(client_->error().message.find("does not know the secret"), std::string::npos) << client_->error().message;
}

TEST_P(SealedStreams, AHelloWithAnyFieldChangedIsRefused) {
  for (const std::size_t at : {5U, 8U, 16U, 20U, 24U, 26U, 33U, 64U, 95U}) {
    start(GetParam());
    Bytes hello = taken(*client_);
    hello[at] ^= std::byte{at == 5 ? std::uint8_t{3} : std::uint8_t{1}};  // 5: the level becomes the other one
    EXPECT_EQ(given(*listener_, hello), Greeted::refused) << at;
  }
}

TEST_P(SealedStreams, AnAnswerOfAProcessWithoutTheSecretIsNotBelieved) {
  start(GetParam());
  const Bytes hello = taken(*client_);
  GreetingBytes read{};
  std::ranges::copy(hello, read.begin());
  const auto answer = answer_to(read, secret_of(99));
  ASSERT_TRUE(answer);
  EXPECT_EQ(given(*client_, answer->bytes), Greeted::refused);
  EXPECT_EQ(client_->error().code, Errc::denied);
  start(GetParam());
  ASSERT_EQ(given(*listener_, taken(*client_)), Greeted::sealed);
  Bytes changed = taken(*listener_);
  changed[40] ^= std::byte{1};  // the listener's key
  EXPECT_EQ(given(*client_, changed), Greeted::refused);
}

TEST_P(SealedStreams, AHelloThatIsRepeatedGivesKeysThatTheRepeaterDoesNotHave) {
  start(GetParam());
  const Bytes hello = taken(*client_);
  ASSERT_EQ(given(*listener_, hello), Greeted::sealed);
  ASSERT_EQ(given(*client_, taken(*listener_)), Greeted::sealed);
  const Bytes records = sealed(*client_, pattern(36, 1));
  const auto again = SealedStream::of_listener(sealed_keys(PacketSecurity::off));
  ASSERT_EQ(given(*again, hello), Greeted::sealed);
  EXPECT_TRUE(opened(*again, records).empty());
}

TEST_P(SealedStreams, AListenerTakesNoLessThanItDemands) {
  const auto less = GetParam() == PacketSecurity::encrypt ? PacketSecurity::authenticate : PacketSecurity::off;
  start(PacketSecurity::authenticate, 6, GetParam());
  const Bytes in_clear = pattern(10, 4);
  EXPECT_EQ(given(*listener_, less == PacketSecurity::off ? in_clear : taken(*client_)), Greeted::refused);
  const std::string told = refused_by("it", refusal_in(refusal_of(listener_->refusal()))).message;
  EXPECT_NE(told.find("TRIBUTARY_SECURITY=" + std::string(to_string(GetParam()))), std::string::npos) << told;
}

TEST_P(SealedStreams, AClientThatMeetsTheListenersDemandGoesOn) {
  start(GetParam(), 6, GetParam());
  const Bytes demand = taken(*listener_);
  EXPECT_NE(refusal_in(demand), RefuseReason::none);
  EXPECT_EQ(given(*client_, demand), Greeted::more);
  ASSERT_EQ(given(*listener_, taken(*client_)), Greeted::sealed);
  EXPECT_EQ(given(*client_, taken(*listener_)), Greeted::sealed);
}

TEST(SealedStream, AClientThatDoesNotMeetTheListenersDemandEnds) {
  const auto client = SealedStream::of_client({{kPlace, PacketSecurity::authenticate}, secret_of(6)}).value();
  const auto listener = SealedStream::of_listener(sealed_keys(PacketSecurity::encrypt));
  EXPECT_EQ(given(*client, taken(*listener)), Greeted::refused);
  EXPECT_NE(client->error().message.find("TRIBUTARY_SECURITY=encrypt"), std::string::npos) << client->error().message;
}

TEST(SealedStream, AListenerThatDemandsNothingTakesFramesInClear) {
  const auto listener = SealedStream::of_listener(sealed_keys(PacketSecurity::off));
  const Bytes first = pattern(70, 1);
  EXPECT_EQ(given(*listener, std::span(first).first(3)), Greeted::more);
  EXPECT_EQ(given(*listener, std::span(first).subspan(3)), Greeted::in_clear);
  EXPECT_TRUE(std::ranges::equal(listener->greeting(), first));
}

TEST(SealedStream, ARecordOfImpossibleLengthIsRefusedAtItsHead) {
  for (const std::uint32_t word : {0U, 4033U, 0x80000000U, 0x80008001U, 0xFFFFFFFFU}) {
    EXPECT_FALSE(record_head(std::as_bytes(std::span(&word, 1)))) << word;
  }
  constexpr std::uint32_t kMost = 0x80008000U;
  EXPECT_TRUE(record_head(std::as_bytes(std::span(&kMost, 1))));
}

}  // namespace
}  // namespace tributary::transport
