#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/ethernet/frames.h"
#include "transport/ethernet/bytes.h"

namespace tributary::transport::ethernet::test {
namespace {

/// Sums word by word, as RFC 1071, section 4.1 does.
std::uint16_t reference(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) sum += load16(bytes.data() + i);
  if (bytes.size() % 2 != 0) sum += std::uint32_t{load8(bytes.data() + bytes.size() - 1)} << 8U;
  while (sum > 0xFFFF) sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

FrameBytes random_bytes(std::size_t size, std::mt19937& random) {
  FrameBytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// The example of RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 add up to ddf2.
TEST(Checksum, IsRightForTheExampleInTheStandard) {
  const FrameBytes bytes = bytes_of(std::string_view("\x00\x01\xf2\x03\xf4\xf5\xf6\xf7", 8));
  EXPECT_EQ(__builtin_bswap16(finish(partial_sum(bytes))), static_cast<std::uint16_t>(~0xDDF2));
}

TEST(Checksum, IsThatOfTheReferenceForEveryLengthAndPlace) {
  std::mt19937 random(7);
  for (std::size_t size = 0; size < 300; ++size) {
    const FrameBytes bytes = random_bytes(size + 3, random);
    for (std::size_t place = 0; place < 3; ++place) {
      const auto part = std::span(bytes).subspan(place, size);
      EXPECT_EQ(__builtin_bswap16(finish(partial_sum(part))), reference(part)) << size << " at " << place;
    }
  }
}

TEST(Checksum, IsRightForTheGreatestDatagramFullOfOnes) {
  const FrameBytes bytes(65535, std::byte{0xFF});
  EXPECT_EQ(__builtin_bswap16(finish(partial_sum(bytes))), reference(bytes));
}

TEST(Checksum, IsTheSameWhileCopying) {
  std::mt19937 random(8);
  for (std::size_t size : {0U, 1U, 31U, 32U, 33U, 63U, 64U, 65U, 1024U, 1471U}) {
    const FrameBytes from = random_bytes(size, random);
    FrameBytes to(size + 1, std::byte{0xEE});
    EXPECT_EQ(finish(copy_and_sum(to.data(), from)), finish(partial_sum(from)));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
    EXPECT_EQ(to.back(), std::byte{0xEE}) << "the copy wrote past the end";
    FrameBytes again(size + 1, std::byte{0xEE});
    EXPECT_EQ(finish(copy_and_sum_words(again.data(), from)), finish(partial_sum(from)));
    EXPECT_EQ(again, to);
  }
}

TEST(Checksum, AddsUpOverTwoPiecesOfOddLengthsToo) {
  std::mt19937 random(9);
  const FrameBytes whole = random_bytes(101, random);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const PartialSum first = partial_sum(std::span(whole).first(cut));
    const PartialSum second = partial_sum(std::span(whole).subspan(cut));
    EXPECT_EQ(finish(first + (cut % 2 == 0 ? second : at_odd_place(second))), finish(partial_sum(whole))) << cut;
  }
}

TEST(Checksum, IsNeverZeroForUdp) {
  EXPECT_EQ(finish(0xFFFF), 0);
  EXPECT_EQ(finish_udp(0xFFFF), 0xFFFF);
  EXPECT_EQ(finish_udp(0x1234), finish(0x1234));
}

}  // namespace
}  // namespace tributary::transport::ethernet::test
