#pragma once
// Recognizes a port's usual datagrams by a few comparisons. Such a datagram has the port's tag or no tag, IPv4 without
// options and fragments or IPv6 without extension headers, UDP with a checksum, and one of the port's addresses. The
// port gives all other frames to parse_frame(), which gives the same results for plain datagrams.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transport/ethernet/addresses.h"
#include "transport/ethernet/bytes.h"
#include "transport/ethernet/checksum.h"
#include "transport/ethernet/frame.h"

namespace tributary::transport::ethernet {

struct PlainDatagram {
  std::array<std::uint64_t, 2> from{};  // an IpAddress in the two words that are stored, so that reads do not wait
  std::uint16_t from_port = 0;
  Ecn ecn = Ecn::not_capable;
  std::uint32_t body_offset = 0;
  std::uint32_t body_bytes = 0;
  PartialSum udp_besides = 0;  // sum of the bytes that UDP's checksum covers besides the body; the caller verifies it
  /// Reads word by word: a read of the whole address would wait until both stores to it have ended.
  void store_from(IpAddress& to) const noexcept {
    std::memcpy(to.data(), &from[0], sizeof from[0]);
    std::memcpy(to.data() + sizeof from[0], &from[1], sizeof from[1]);
  }
};

class PlainUdp {
 public:
  /// Makes an object to which no frame matches until the port is set.
  PlainUdp() = default;
  /// `vlan`: 0 for frames without a tag.
  PlainUdp(const MacAddress& mac, std::uint16_t vlan, std::uint16_t port) noexcept
      : vlan_(vlan), port_(__builtin_bswap16(port)), ip_at_(kEthernetBytes + (vlan != 0 ? kVlanBytes : 0)) {
    std::memcpy(&mac_, mac.bytes.data(), mac.bytes.size());
  }
  /// Sets the port's address of this family, in place of an earlier one.
  void add(const IpAddress& own) noexcept {
    if (is_ipv4(own)) {
      std::memcpy(&ipv4_, own.data() + 12, sizeof ipv4_);
    } else {
      std::memcpy(ipv6_.data(), own.data(), sizeof ipv6_);
    }
  }

  /// Returns true if the frame is a plain datagram; else `found` has no meaning.
  [[nodiscard]] bool match(std::span<const std::byte> frame, PlainDatagram& found) const noexcept {
    constexpr std::uint64_t kSix = 0xFFFF'FFFF'FFFF;
    if (frame.size() < ip_at_ + kIpv4Bytes + kUdpBytes || port_ == 0) return false;
    const std::byte* const at = frame.data();
    const auto from_mac = load<std::uint64_t>(at + 6) & kSix;
    if ((load<std::uint64_t>(at) & kSix) != mac_ || from_mac == mac_ || (from_mac & 1U) != 0) return false;
    if (vlan_ != 0 && !has_tag(at + kEthernetBytes - 2)) return false;
    // Ethernet's type, and the first byte of the next header, as one number.
    constexpr std::uint32_t kIpv4WithoutOptions = 0x450008;
    constexpr std::uint32_t kIpv6 = 0x60DD86;
    const auto kind = load<std::uint32_t>(at + ip_at_ - 2);
    if ((kind & 0xFFFFFFU) == kIpv4WithoutOptions) return match_ipv4(frame, found);
    return (kind & 0xF0FFFFU) == kIpv6 && match_ipv6(frame, found);
  }

 private:
  [[nodiscard]] bool has_tag(const std::byte* at) const noexcept {
    constexpr std::uint16_t kNumber = 0xFFF;
    return load16(at) == static_cast<std::uint16_t>(EtherType::vlan) && (load16(at + 2) & kNumber) == vlan_;
  }

  /// The header is read in three words: from version to fragment, from time to live to source, and the destination.
  [[nodiscard]] bool match_ipv4(std::span<const std::byte> frame, PlainDatagram& found) const noexcept {
    const std::byte* const ip = frame.data() + ip_at_;
    const auto first = load<std::uint64_t>(ip);
    const auto second = load<std::uint64_t>(ip + 8);
    const auto to = load<std::uint32_t>(ip + 16);
    constexpr std::uint64_t kFragment = 0xFF3F;  // the flag "more fragments" and the offset
    const bool whole = (first >> 48U & kFragment) == 0;
    const bool udp = (second >> 8U & 0xFFU) == static_cast<std::uint8_t>(IpProtocol::udp);
    if (ipv4_ == 0 || to != ipv4_ || !whole || !udp) return false;
    const auto from = static_cast<std::uint32_t>(second >> 32U);
    const std::uint32_t net = from & 0xFFU;
    if (from == 0 || net == 127 || net >> 4U == 0xE || from == 0xFFFFFFFFU) return false;
    const std::uint32_t total = __builtin_bswap16(static_cast<std::uint16_t>(first >> 16U));
    if (total < kIpv4Bytes + kUdpBytes || total > frame.size() - ip_at_) return false;
    const PartialSum addresses = std::uint64_t{from} + to;
    if (finish(halves(first) + (second & 0xFFFFFFFFU) + addresses) != 0) return false;
    constexpr std::uint64_t kMapped = 0xFFFF0000;
    found.from = {0, kMapped | std::uint64_t{from} << 32U};
    found.ecn = static_cast<Ecn>(first >> 8U & 3U);
    found.udp_besides = addresses;
    constexpr std::uint32_t kHead = kIpv4Bytes;
    return match_udp(ip + kIpv4Bytes, static_cast<std::uint32_t>(ip_at_) + kHead, total - kHead, found);
  }

  [[nodiscard]] bool match_ipv6(std::span<const std::byte> frame, PlainDatagram& found) const noexcept {
    if (frame.size() < ip_at_ + kIpv6Bytes + kUdpBytes) return false;
    const std::byte* const ip = frame.data() + ip_at_;
    const bool ours = (ipv6_[0] | ipv6_[1]) != 0 && load<std::uint64_t>(ip + 24) == ipv6_[0] &&
                      load<std::uint64_t>(ip + 32) == ipv6_[1];
    if (!ours || load8(ip + 6) != static_cast<std::uint8_t>(IpProtocol::udp)) return false;
    const std::uint32_t bytes = load16(ip + 4);
    if (bytes < kUdpBytes || bytes > frame.size() - ip_at_ - kIpv6Bytes) return false;
    found.from = {load<std::uint64_t>(ip + 8), load<std::uint64_t>(ip + 16)};
    // Unspecified, loopback and mapped addresses begin with 64 zeros, groups with 0xFF: these frames go to the parser.
    if (found.from[0] == 0 || load8(ip + 8) == 0xFF) return false;
    found.ecn = static_cast<Ecn>(load8(ip + 1) >> 4U & 3U);
    found.udp_besides = sum_of_words<32>(ip + 8);
    return match_udp(ip + kIpv6Bytes, static_cast<std::uint32_t>(ip_at_ + kIpv6Bytes), bytes, found);
  }

  /// `offset` is the place of UDP's header in the frame; `bytes` is the number of bytes from there, by IP's lengths.
  [[nodiscard]] bool match_udp(const std::byte* udp, std::uint32_t offset, std::uint32_t bytes,
                               PlainDatagram& found) const noexcept {
    const auto header = load<std::uint64_t>(udp);  // ports, length, checksum
    const auto from_port = static_cast<std::uint16_t>(header);
    const auto length = __builtin_bswap16(static_cast<std::uint16_t>(header >> 32U));
    if (static_cast<std::uint16_t>(header >> 16U) != port_ || from_port == 0 || length != bytes || header >> 48U == 0)
      return false;
    found.from_port = __builtin_bswap16(from_port);
    found.body_offset = offset + std::uint32_t{kUdpBytes};
    found.body_bytes = bytes - std::uint32_t{kUdpBytes};
    found.udp_besides +=
        __builtin_bswap16(static_cast<std::uint16_t>(IpProtocol::udp)) + __builtin_bswap32(bytes) + halves(header);
    return true;
  }

  [[nodiscard]] static PartialSum halves(std::uint64_t word) noexcept { return (word & 0xFFFFFFFFU) + (word >> 32U); }
  template <class T>
  [[nodiscard]] static T load(const std::byte* at) noexcept {
    T value{};
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint64_t mac_ = 0;
  std::uint32_t ipv4_ = 0;  // 0: none
  std::uint16_t vlan_ = 0;
  std::uint16_t port_ = 0;  // port number in network byte order; 0: none
  std::size_t ip_at_ = kEthernetBytes;
  std::array<std::uint64_t, 2> ipv6_{};  // 0: none
};

}  // namespace tributary::transport::ethernet
