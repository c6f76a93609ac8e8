#include "ethernet/checksum.h"

#include <cstring>

namespace tributary::transport::ethernet {
namespace {

template <class T>
T load(const std::byte* at) noexcept {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// Less than a block: what is left over at the end.
PartialSum sum_of_rest(const std::byte* at, std::size_t bytes) noexcept {
  PartialSum sum = 0;
  for (; bytes >= 4; at += 4, bytes -= 4) sum += load<std::uint32_t>(at);
  if (bytes >= 2) {
    sum += load<std::uint16_t>(at);
    at += 2;
    bytes -= 2;
  }
  return bytes == 0 ? sum : sum + std::to_integer<PartialSum>(*at);
}

// Four sums that do not wait for each other; the compiler makes vectors of them.
constexpr std::size_t kBlockBytes = 32;
struct Block {
  std::uint32_t words[kBlockBytes / 4];
};

}  // namespace

PartialSum partial_sum(std::span<const std::byte> bytes) noexcept {
  PartialSum sums[kBlockBytes / 4] = {};
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= kBlockBytes; at += kBlockBytes, left -= kBlockBytes) {
    const auto block = load<Block>(at);
    for (std::size_t i = 0; i < kBlockBytes / 4; ++i) sums[i] += block.words[i];
  }
  PartialSum sum = sum_of_rest(at, left);
  for (const PartialSum part : sums) sum += part;
  return sum;
}

PartialSum copy_and_sum(std::byte* to, std::span<const std::byte> from) noexcept {
  PartialSum sums[kBlockBytes / 4] = {};
  const std::byte* at = from.data();
  std::size_t left = from.size();
  for (; left >= kBlockBytes; at += kBlockBytes, to += kBlockBytes, left -= kBlockBytes) {
    const auto block = load<Block>(at);
    std::memcpy(to, &block, sizeof block);
    for (std::size_t i = 0; i < kBlockBytes / 4; ++i) sums[i] += block.words[i];
  }
  if (left > 0) std::memcpy(to, at, left);
  PartialSum sum = sum_of_rest(at, left);
  for (const PartialSum part : sums) sum += part;
  return sum;
}

PartialSum at_odd_place(PartialSum sum) noexcept {
  const auto folded = static_cast<std::uint16_t>(~finish(sum));
  return __builtin_bswap16(folded);
}

PartialSum pseudo_header_sum(const IpAddress& from, const IpAddress& to, std::uint8_t protocol,
                             std::uint32_t bytes) noexcept {
  const std::size_t begin = is_ipv4(from) ? 12 : 0;  // the rest of it adds up to the same for IPv4 and IPv6
  const auto address = [begin](const IpAddress& ip) {
    return partial_sum(std::as_bytes(std::span(ip)).subspan(begin));
  };
  return address(from) + address(to) + __builtin_bswap16(protocol) + __builtin_bswap32(bytes);
}

std::uint16_t finish(PartialSum sum) noexcept {
  sum = (sum & 0xFFFFFFFFU) + (sum >> 32U);
  sum = (sum & 0xFFFFFFFFU) + (sum >> 32U);
  sum = (sum & 0xFFFFU) + (sum >> 16U);
  sum = (sum & 0xFFFFU) + (sum >> 16U);
  sum = (sum & 0xFFFFU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

std::uint16_t finish_udp(PartialSum sum) noexcept {
  const std::uint16_t checksum = finish(sum);
  return checksum == 0 ? 0xFFFF : checksum;
}

}  // namespace tributary::transport::ethernet
