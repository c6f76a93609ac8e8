// Keys and sealed packets: the bytes of the example in docs/protocol.md, and packets that a receiver must not believe.
#include "transport/packet/seal.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/unit/packet/sealed_keys.h"

namespace tributary::transport::packet {
namespace {

using transport::test::secret_of;

SealContext context_of(PacketSecurity level) {
  SealContext context{.level = level, .client = 0x1122334455667788ULL, .listener = 0x99AABBCCDDEEFF00ULL};
  for (std::size_t i = 0; i < kHandshakeRandomBytes; ++i) {
    context.client_random[i] = static_cast<std::byte>(0x40 + i);
    context.listener_random[i] = static_cast<std::byte>(0x80 + i);
  }
  return context;
}

std::vector<std::byte> sealed(Seal& seal, std::uint64_t number, std::size_t payload, std::size_t copied = 0) {
  PacketHeader header;
  header.flags = packet_flags::kSealed | packet_flags::kAcks;
  header.payload_bytes = static_cast<std::uint16_t>(payload);
  header.connection = 0x99AABBCCDDEEFF00ULL;
  header.number = number;
  header.credit = 65536;
  const std::size_t head = kPacketHeaderBytes + kSealTagBytes + copied;
  std::vector<std::byte> bytes(kPacketHeaderBytes + kSealTagBytes + payload);
  std::memcpy(bytes.data(), &header, sizeof header);
  for (std::size_t i = 0; i < payload; ++i) {
    bytes[kPacketHeaderBytes + kSealTagBytes + i] = static_cast<std::byte>(i);
  }
  const std::vector<std::byte> rest(bytes.begin() + static_cast<std::ptrdiff_t>(head), bytes.end());
  EXPECT_TRUE(seal.seal(number, std::span(bytes).first(head), rest, std::span(bytes).subspan(head)));
  return bytes;
}

bool has_payload(std::span<const std::byte> datagram) {
  const auto payload = datagram.subspan(kPacketHeaderBytes + kSealTagBytes);
  for (std::size_t i = 0; i < payload.size(); ++i) {
    if (payload[i] != static_cast<std::byte>(i)) return false;
  }
  return true;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(byte) >> 4U];
    text += digits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

std::vector<std::byte> behind_header(const std::vector<std::byte>& bytes) {
  return {bytes.begin() + kPacketHeaderBytes, bytes.end()};
}

class Sealing : public ::testing::TestWithParam<PacketSecurity> {
 protected:
  Seal client_{secret_of(1), context_of(GetParam()), true};
  Seal listener_{secret_of(1), context_of(GetParam()), false};
};
INSTANTIATE_TEST_SUITE_P(Levels, Sealing, ::testing::Values(PacketSecurity::authenticate, PacketSecurity::encrypt),
                         [](const auto& level) { return std::string(to_string(level.param)); });

TEST_P(Sealing, OpensASealedPacketWhicheverPartOfItWasCopied) {
  for (const std::size_t copied : {0U, 1U, 15U, 16U, 64U, 200U}) {
    auto bytes = sealed(client_, 10 + copied, 200, copied);
    EXPECT_EQ(has_payload(bytes), GetParam() == PacketSecurity::authenticate);
    ASSERT_TRUE(decode_packet(bytes));
    ASSERT_EQ(listener_.open(10 + copied, bytes), Seal::Verdict::authentic) << copied;
    EXPECT_TRUE(has_payload(bytes));
  }
}

TEST_P(Sealing, NoticesEveryChangedBit) {
  const auto bytes = sealed(client_, 3, 40);
  for (std::size_t i = 0; i < 8 * bytes.size(); ++i) {
    auto changed = bytes;
    changed[i / 8] ^= static_cast<std::byte>(1U << i % 8);
    ASSERT_EQ(listener_.open(3, changed), Seal::Verdict::forged) << i;
  }
  auto whole = bytes;
  EXPECT_EQ(listener_.open(3, whole), Seal::Verdict::authentic) << "a forged packet uses up no number";
}

TEST_P(Sealing, TakesEachNumberOnceAndNoneThatIsTooOld) {
  for (const std::uint64_t number : {5U, 2U, 900U}) {
    auto first = sealed(client_, number, 10);
    auto second = first;
    EXPECT_EQ(listener_.open(number, first), Seal::Verdict::authentic);
    EXPECT_EQ(listener_.open(number, second), Seal::Verdict::repeated);
  }
  auto late = sealed(client_, 3, 10);
  EXPECT_EQ(listener_.open(3, late), Seal::Verdict::authentic) << "few packets have overtaken this one";
  auto far = sealed(client_, 5000, 10);
  EXPECT_EQ(listener_.open(5000, far), Seal::Verdict::authentic);
  auto old = sealed(client_, 5000 - ReplayFilter::kNumbers, 10);
  EXPECT_EQ(listener_.open(5000 - ReplayFilter::kNumbers, old), Seal::Verdict::repeated);
}

TEST_P(Sealing, APacketThatIsSentBackIsRefused) {
  auto own = sealed(client_, 3, 10);
  EXPECT_EQ(client_.open(3, own), Seal::Verdict::forged) << "each direction has a key of its own";
}

TEST_P(Sealing, APacketOfAnotherSecretConnectionOrLevelIsRefused) {
  SealContext other_name = context_of(GetParam());
  other_name.client += 1;
  SealContext other_random = context_of(GetParam());
  other_random.client_random[0] ^= std::byte{1};
  const auto other_level =
      context_of(GetParam() == PacketSecurity::encrypt ? PacketSecurity::authenticate : PacketSecurity::encrypt);
  Seal strangers[] = {{secret_of(2), context_of(GetParam()), true},
                      {secret_of(1), other_name, true},
                      {secret_of(1), other_random, true},
                      {secret_of(1), other_level, true}};
  for (Seal& stranger : strangers) {
    auto bytes = sealed(stranger, 3, 10);
    EXPECT_EQ(listener_.open(3, bytes), Seal::Verdict::forged);
  }
}

TEST_P(Sealing, ChangesItsKeyInTimeAndFollowsTheOtherSide) {
  constexpr std::uint64_t kPhase = std::uint64_t{1} << Seal::kPhaseBits;
  for (const std::uint64_t number : {kPhase - 2, kPhase, kPhase - 1, kPhase + 1, 2 * kPhase, kPhase + 3, 3 * kPhase}) {
    auto bytes = sealed(client_, number, 20);
    const bool in_window = number + ReplayFilter::kNumbers >= kPhase && number != kPhase + 3;
    EXPECT_EQ(listener_.open(number, bytes), in_window ? Seal::Verdict::authentic : Seal::Verdict::repeated) << number;
  }
  auto far_ahead = sealed(client_, 9 * kPhase, 20);
  EXPECT_EQ(listener_.open(9 * kPhase, far_ahead), Seal::Verdict::forged) << "keys are made only for the next phase";
}

TEST_P(Sealing, TellsAcceptAndCloseOfTheOtherSideFromForgedOnes) {
  auto bytes = sealed(client_, 0, 0);
  const auto header = std::span<const std::byte>(bytes).first(kPacketHeaderBytes);
  EXPECT_EQ(client_.control_tag(true, header, {}), listener_.control_tag(false, header, {}));
  EXPECT_NE(client_.control_tag(true, header, {}), listener_.control_tag(true, header, {}));
  EXPECT_NE(open_tag(secret_of(1), header, {}), open_tag(secret_of(2), header, {}));
}

// Compares with the bytes that tests/unit/packet/seal_vectors.py makes by another implementation.
TEST(SealVectors, AreThoseOfTheProtocol) {
  Seal authenticates(secret_of(1), context_of(PacketSecurity::authenticate), true);
  Seal encrypts(secret_of(1), context_of(PacketSecurity::encrypt), true);
  EXPECT_EQ(hex(behind_header(sealed(authenticates, 5, 32))),
            "3d83d9f431699d515a0587a566c72ba8000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
  EXPECT_EQ(hex(behind_header(sealed(encrypts, 5, 32))),
            "bc1aebb832d247256c6a07b9a6983ac9f2005919ba8ef084b3e487d7804852a4c9079d06c0a0df679a899f4396af31b8");
  EXPECT_EQ(hex(behind_header(sealed(encrypts, (1 << 22) + 5, 32))),
            "8b5bfaac7cc213f1aa274fa1e87d8b400f7466b44a0fa4d008e3771ae4d108fe83534d347d7a45e037967acdfaab0be5");
  auto bytes = sealed(encrypts, 0, 0);
  const auto header = std::span<const std::byte>(bytes).first(kPacketHeaderBytes);
  EXPECT_EQ(hex(open_tag(secret_of(1), header, {})), "c9d8fa6b6df09162accc6d2a8de655ff");
  EXPECT_EQ(hex(encrypts.control_tag(true, header, {})), "ff9011511a212d815641be0612267d99");
}

}  // namespace
}  // namespace tributary::transport::packet
