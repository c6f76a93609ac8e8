// Bytes of a packet: the checksum, the header, the numbers, and datagrams that decode_packet() must refuse.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "transport/ethernet/checksum.h"
#include "transport/packet/crc32c.h"
#include "transport/packet/faulty_port.h"
#include "transport/packet/payload_place.h"
#include "transport/packet/received_numbers.h"
#include "transport/packet/siphash.h"
#include "transport/packet/wire.h"
#include "transport/random/random.h"

namespace tributary::transport::packet {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::byte> random_bytes(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

TEST(Crc32c, IsThatOfTheStandards) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U);
  EXPECT_EQ(crc32c_portable(bytes_of("123456789")), 0xE3069283U);
  const std::vector<std::byte> zeros(32);
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAU) << "RFC 3720, B.4";
  const std::vector<std::byte> ones(32, std::byte{0xFF});
  EXPECT_EQ(crc32c(ones), 0x62A8AB43U) << "RFC 3720, B.4";
}

TEST(Crc32c, IsTheSameByInstructionByTableAndInPieces) {
  const auto bytes = random_bytes(5000, 1);
  for (std::size_t length = 0; length < bytes.size(); length += length < 40 ? 1 : 97) {
    for (const std::size_t skip : {0U, 1U, 7U}) {
      const auto part =
          std::span(bytes).subspan(std::min<std::size_t>(skip, length), length - std::min<std::size_t>(skip, length));
      const std::uint32_t whole = crc32c(part);
      ASSERT_EQ(whole, crc32c_portable(part)) << length;
      ASSERT_EQ(whole, crc32c_instruction(part)) << length;
      const std::size_t cut = part.size() / 3;
      ASSERT_EQ(whole, crc32c(part.subspan(cut), crc32c(part.first(cut)))) << length;
    }
  }
}

TEST(Crc32c, TheSumOfASuffixIsComputedOnceForAllPrefixes) {
  const auto bytes = random_bytes(3000, 2);
  for (const std::size_t length : {0U, 1U, 4U, 5U, 63U, 64U, 256U, 1024U, 2900U}) {
    const auto suffix = std::span(bytes).last(length);
    const auto found = Crc32cSuffix::of(suffix);
    for (const std::size_t before : {0U, 1U, 60U, 124U}) {
      const auto prefix = std::span(bytes).first(before);
      ASSERT_EQ(found.behind(crc32c(prefix)), crc32c(suffix, crc32c(prefix))) << length << " behind " << before;
      const auto pieces = Crc32cSuffix::of(suffix.first(length / 3), suffix.subspan(length / 3));
      ASSERT_EQ(pieces.behind(crc32c(prefix)), crc32c(suffix, crc32c(prefix))) << length << " in two pieces";
    }
  }
}

TEST(Crc32c, WithTheSumOfUdpIsBothInOnePass) {
  const auto bytes = random_bytes(9000, 6);
  for (std::size_t length = 0; length < bytes.size(); length += length < 600 ? 1 : 509) {
    const auto part = std::span(bytes).last(length);
    std::uint64_t sum = 77;
    ASSERT_EQ(crc32c_and_sum(part, 5, sum), crc32c(part, 5)) << length;
    ASSERT_EQ(ethernet::finish(sum), ethernet::finish(77 + ethernet::partial_sum(part))) << length;
  }
  const std::vector<std::byte> ones(70'000, std::byte{0xFF});
  std::uint64_t sum = 0;
  EXPECT_EQ(crc32c_and_sum(ones, 0, sum), crc32c_portable(ones));
  EXPECT_EQ(ethernet::finish(sum), ethernet::finish(ethernet::partial_sum(ones)));
  EXPECT_EQ(crc32c_of_header(bytes.data()), crc32c_portable(std::span(bytes).first(kCrc32cHeaderBytes)));
}

TEST(SipHash, IsThatOfItsAuthors) {
  const SipKey key{0x0706050403020100ULL, 0x0F0E0D0C0B0A0908ULL};
  std::array<std::byte, 15> message;
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i);
  EXPECT_EQ(siphash(key, message), 0xA129CA6149BE45E5ULL) << "the value is from appendix A of the paper";
  EXPECT_EQ(siphash(key, {}), 0x726FDB47DD0E0E31ULL) << "the value is the first of the reference's vectors";
}

std::vector<std::byte> packet_with(PacketHeader header, std::span<const std::byte> payload) {
  std::vector<std::byte> bytes(kPacketHeaderBytes);
  encode(header, std::span(bytes).first<kPacketHeaderBytes>(), payload.first(payload.size() / 2),
         payload.subspan(payload.size() / 2));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

TEST(Wire, BringsEveryField) {
  PacketHeader header;
  header.type = PacketType::data;
  header.flags = packet_flags::kAcks | packet_flags::kFin;
  header.connection = 0x1122334455667788ULL;
  header.number = 0x99AABBCCDDEEFF00ULL;
  header.bitmap = 0x0F0E0D0C0B0A0908ULL;
  header.offset = 1;
  header.received = 2;
  header.credit = 3;
  header.largest = 4;
  header.ack_delay_us = 5;
  header.marked = 6;
  header.reason = 7;
  const auto payload = random_bytes(777, 2);
  const auto bytes = packet_with(header, payload);
  const auto got = decode_packet(bytes);
  ASSERT_TRUE(got) << to_string(got.error());
  header.payload_bytes = 777;
  header.checksum = got->checksum;
  EXPECT_EQ(std::memcmp(&*got, &header, sizeof header), 0);
}

TEST(Wire, RejectsEverySingleDamagedByteAndEveryOtherLength) {
  const auto bytes = packet_with({.connection = 5, .number = 6}, random_bytes(200, 3));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto damaged = bytes;
    damaged[i] ^= std::byte{0x40};
    ASSERT_FALSE(decode_packet(damaged)) << i;
  }
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(decode_packet(std::span(bytes).first(length))) << length;
  }
  auto longer = bytes;
  longer.push_back({});
  EXPECT_EQ(decode_packet(longer).error(), PacketReject::length);
}

TEST(Wire, WritesAHeaderThatIsKeptInWordsTheSameWay) {
  PacketHeader header;
  header.flags = packet_flags::kAcks;
  header.connection = 0x1122334455667788ULL;
  header.bitmap = 0x0F0E0D0C0B0A0908ULL;
  header.received = 0xFFFFFFFE;
  header.credit = 3;
  header.largest = 4;
  header.ack_delay_us = 5;
  header.marked = 6;
  DataHeader kept(header);
  const auto payload = random_bytes(1300, 8);
  for (std::uint64_t number = 0xFFFFFFF0; number < 0x100000010; number += 7) {
    for (const bool fin : {false, true}) {
      header.number = number;
      header.offset = static_cast<std::uint32_t>(number * 1000);
      header.flags = fin ? packet_flags::kAcks | packet_flags::kFin : packet_flags::kAcks;
      kept.set(fin ? packet_flags::kFin : std::uint16_t{0}, number, header.offset);
      std::vector<std::byte> expected(kPacketHeaderBytes), plain(kPacketHeaderBytes), framed(kPacketHeaderBytes);
      encode(header, std::span(expected).first<kPacketHeaderBytes>(), payload, {});
      kept.write(std::span(plain).first<kPacketHeaderBytes>(), payload);
      const auto head = std::span(payload).first(64);
      const auto rest = std::span(payload).subspan(64);
      kept.write(std::span(framed).first<kPacketHeaderBytes>(), {}, Crc32cSuffix::of(head, rest), payload.size());
      EXPECT_EQ(plain, expected);
      EXPECT_EQ(framed, expected);
      EXPECT_EQ(kept.number(), number);
      EXPECT_EQ(kept.fields().flags, header.flags);
    }
  }
}

TEST(Wire, VerifiesTheChecksumOfUdpIfThePortLeavesIt) {
  const auto bytes = packet_with({.connection = 5, .number = 6}, random_bytes(1001, 9));
  // Give decode_packet() the sum of all other bytes, like a receiver that has summed the whole datagram.
  const std::uint64_t besides = ethernet::finish(ethernet::partial_sum(bytes));
  EXPECT_TRUE(decode_packet(bytes, besides));
  EXPECT_EQ(decode_packet(bytes, besides + 1).error(), PacketReject::checksum);
  PacketHeader sealed;
  sealed.flags = packet_flags::kSealed;
  sealed.payload_bytes = 100;
  std::vector<std::byte> secret(kPacketHeaderBytes + kSealTagBytes + 100, std::byte{3});
  std::memcpy(secret.data(), &sealed, sizeof sealed);
  const std::uint64_t its = ethernet::finish(ethernet::partial_sum(secret));
  EXPECT_TRUE(decode_packet(secret, its));
  EXPECT_EQ(decode_packet(secret, its + 1).error(), PacketReject::checksum);
}

TEST(Wire, NamesTheReasonWhyBytesAreNoPacket) {
  PacketHeader header;
  header.version = 2;
  EXPECT_EQ(decode_packet(packet_with(header, {})).error(), PacketReject::version);
  header = {};
  header.type = static_cast<PacketType>(9);
  EXPECT_EQ(decode_packet(packet_with(header, {})).error(), PacketReject::type);
  header = {};
  header.flags = 0x8000;
  EXPECT_EQ(decode_packet(packet_with(header, {})).error(), PacketReject::flags);
  EXPECT_EQ(decode_packet(random_bytes(100, 4)).error(), PacketReject::magic);
  EXPECT_FALSE(decode_handshake(random_bytes(63, 5)));
}

TEST(Wire, ExpandsNumbersAroundTheirNeighbours) {
  EXPECT_EQ(expand(5, 0), 5U);
  EXPECT_EQ(expand(5, 0x1'0000'0003ULL), 0x1'0000'0005ULL);
  EXPECT_EQ(expand(0xFFFFFFFE, 0x2'0000'0003ULL), 0x1'FFFF'FFFEULL);
  EXPECT_EQ(expand(3, 0x1'FFFF'FFFEULL), 0x2'0000'0003ULL);
}

TEST(PayloadPlace, DiffersForMostPayloadsAtEqualDistances) {
  constexpr std::uintptr_t kBegin = 0x7F0012340000;
  constexpr std::size_t kPayloads = 16;
  for (std::uintptr_t lines = 1; lines <= 4096; ++lines) {
    std::set<std::size_t> places;
    for (std::size_t i = 0; i < kPayloads; ++i) {
      // The code uses the address as a number, and never reads from it.
      places.insert(payload_place(reinterpret_cast<const std::byte*>(kBegin + i * lines * 64)));
    }
    EXPECT_GE(places.size(), kPayloads / 2) << lines << " lines from one to the next";
  }
}

TEST(ReceivedNumbers, RemembersTheLatestAndSixtyFourBefore) {
  ReceivedNumbers numbers;
  EXPECT_TRUE(numbers.empty());
  for (const std::uint64_t number : {10U, 12U, 11U, 75U}) numbers.note(number);
  EXPECT_EQ(numbers.largest(), 75U);
  for (const std::uint64_t number : {11U, 12U, 75U}) EXPECT_TRUE(numbers.has(number)) << number;
  for (const std::uint64_t number : {10U, 13U, 74U, 76U}) EXPECT_FALSE(numbers.has(number)) << number;
  numbers.note(200);
  EXPECT_EQ(numbers.bitmap(), 0U);
  numbers.note(136);
  EXPECT_TRUE(numbers.has(136));
  EXPECT_FALSE(numbers.forgot(136));
  EXPECT_TRUE(numbers.forgot(135));
  EXPECT_FALSE(numbers.forgot(200));
  EXPECT_FALSE(numbers.forgot(201));
  EXPECT_TRUE(numbers.follows(201));
  EXPECT_FALSE(numbers.follows(202));
}

TEST(PortFaults, ReadsItsSettings) {
  const auto faults = parse_port_faults("lost=10,seed=99,overtaken=50,repeated=1,damaged=1000");
  ASSERT_TRUE(faults);
  EXPECT_EQ(faults->lost, 10U);
  EXPECT_EQ(faults->seed, 99U);
  EXPECT_EQ(faults->overtaken, 50U);
  for (const char* wrong : {"lost", "lost=1001", "lost=x", "loss=1", "lost=1 "})
    EXPECT_FALSE(parse_port_faults(wrong)) << wrong;
}

}  // namespace
}  // namespace tributary::transport::packet
