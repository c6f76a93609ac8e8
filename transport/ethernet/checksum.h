#pragma once
// The checksum of IP, ICMP and UDP: one's complement sum of 16-bit words (RFC 1071). Partial sums are kept in the
// processor's byte order, which RFC 1071 (2B) allows, and added up in any order; each part but the last must have an
// even length.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/ethernet/addresses.h"

namespace tributary::transport::ethernet {

/// A sum that is not folded yet; it has room for the words of 4 GiB.
using PartialSum = std::uint64_t;

[[nodiscard]] PartialSum partial_sum(std::span<const std::byte> bytes) noexcept;
/// Sums `from` while it copies `from` to `to`: one pass over memory instead of two.
[[nodiscard]] PartialSum copy_and_sum(std::byte* to, std::span<const std::byte> from) noexcept;
/// Sums a header that was just written in words of 64 bits or larger. It reads the same words, and so gets them from
/// the stores that are still under way. A larger read would wait until these stores, and all earlier ones, have reached
/// the cache: some hundred cycles, if another processor has the cache lines.
[[nodiscard]] inline PartialSum copy_and_sum_words(std::byte* to, std::span<const std::byte> from) noexcept {
  PartialSum low = 0;
  PartialSum high = 0;
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= from.size(); i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from.data() + i, sizeof word);
    asm("" : "+r"(word));  // keeps the compiler from joining the words
    std::memcpy(to + i, &word, sizeof word);
    low += word & 0xFFFFFFFFU;
    high += word >> 32U;
  }
  return i == from.size() ? low + high : low + high + copy_and_sum(to + i, from.subspan(i));
}
/// Sums a header of a length that the compiler knows.
template <std::size_t kBytes>
[[nodiscard]] inline PartialSum copy_and_sum_words(std::byte* to, std::span<const std::byte, kBytes> from) noexcept {
  static_assert(kBytes % sizeof(std::uint64_t) == 0);
  PartialSum sum = 0;
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kBytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from.data() + i, sizeof word);
    asm("" : "+r"(word));
    std::memcpy(to + i, &word, sizeof word);
    sum += (word & 0xFFFFFFFFU) + (word >> 32U);
  }
  return sum;
}
/// The sum of bytes at an odd position, if `sum` is their sum at an even position.
[[nodiscard]] PartialSum at_odd_place(PartialSum sum) noexcept;
/// The sum of the pseudo header, which the checksums of UDP and ICMPv6 also cover.
[[nodiscard]] PartialSum pseudo_header_sum(const IpAddress& from, const IpAddress& to, std::uint8_t protocol,
                                           std::uint32_t bytes) noexcept;
/// The checksum in the processor's byte order, to be stored by memcpy. For bytes that contain their own correct
/// checksum it is 0.
[[nodiscard]] inline std::uint16_t finish(PartialSum sum) noexcept {
  // Adds the sum to itself with its halves exchanged: the upper half is then the sum of the halves, with its carry.
  const auto half = static_cast<std::uint32_t>((sum + std::rotl(sum, 32)) >> 32U);
  return static_cast<std::uint16_t>(~((half + std::rotl(half, 16)) >> 16U));
}
/// The sum of a few whole words that follow each other, such as addresses or a header.
template <std::size_t kBytes>
[[nodiscard]] inline PartialSum sum_of_words(const std::byte* at) noexcept {
  static_assert(kBytes % sizeof(std::uint32_t) == 0);
  PartialSum sum = 0;
  for (std::size_t i = 0; i < kBytes; i += sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, at + i, sizeof word);
    sum += word;
  }
  return sum;
}
/// True if a datagram's checksum is right; `besides` is the sum of all bytes that it covers except `body`.
[[nodiscard]] inline bool udp_right(PartialSum besides, std::span<const std::byte> body) noexcept {
  return finish(besides + partial_sum(body)) == 0;
}
/// Stores finish()'s result in a header.
inline void store_checksum(std::byte* at, std::uint16_t checksum) noexcept {
  std::memcpy(at, &checksum, sizeof checksum);
}
/// The result of finish(), but never 0, which means "no checksum" in UDP.
[[nodiscard]] inline std::uint16_t finish_udp(PartialSum sum) noexcept {
  const std::uint16_t checksum = finish(sum);
  return checksum == 0 ? 0xFFFF : checksum;
}

}  // namespace tributary::transport::ethernet
