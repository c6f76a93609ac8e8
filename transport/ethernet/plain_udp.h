#pragma once
// The datagrams that a port waits for, told from all other frames by a few comparisons: with the port's tag or without
// one, IPv4 without options and fragments or IPv6 without extension headers, UDP with a checksum, to one of the port's
// addresses. What is not one of them is for parser.h, which says what it is; what is one, it would say the same of.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ethernet/addresses.h"
#include "ethernet/bytes.h"
#include "ethernet/checksum.h"
#include "ethernet/frame.h"

namespace tributary::transport::ethernet {

struct PlainDatagram {
  std::array<std::uint64_t, 2> from{};  // an IpAddress in two words: stored so, it can be read soon
  std::uint16_t from_port = 0;
  Ecn ecn = Ecn::not_capable;
  std::uint32_t body_offset = 0;
  std::uint32_t body_bytes = 0;
  PartialSum udp_besides = 0;  // of all that UDP's checksum, which is not verified, covers besides the body
  void store_from(IpAddress& to) const noexcept { std::memcpy(to.data(), from.data(), sizeof from); }
};

class PlainUdp {
 public:
  /// None matches.
  PlainUdp() = default;
  /// `vlan`: 0 for frames without a tag.
  PlainUdp(const MacAddress& mac, std::uint16_t vlan, std::uint16_t port) noexcept
      : vlan_(vlan), port_(port), ip_at_(kEthernetBytes + (vlan != 0 ? kVlanBytes : 0)) {
    std::memcpy(&mac_, mac.bytes.data(), mac.bytes.size());
  }
  /// One of the port's addresses: of each family the last one that was added counts.
  void add(const IpAddress& own) noexcept {
    if (is_ipv4(own)) {
      std::memcpy(&ipv4_, own.data() + 12, sizeof ipv4_);
    } else {
      std::memcpy(ipv6_.data(), own.data(), sizeof ipv6_);
    }
  }

  /// False: `found` means nothing.
  [[nodiscard]] bool match(std::span<const std::byte> frame, PlainDatagram& found) const noexcept {
    constexpr std::uint64_t kSix = 0xFFFF'FFFF'FFFF;
    if (frame.size() < ip_at_ + kIpv4Bytes + kUdpBytes || port_ == 0) return false;
    const std::byte* const at = frame.data();
    const auto from_mac = load<std::uint64_t>(at + 6) & kSix;
    if ((load<std::uint64_t>(at) & kSix) != mac_ || from_mac == mac_ || (from_mac & 1U) != 0) return false;
    if (vlan_ != 0 && !has_tag(at + kEthernetBytes - 2)) return false;
    // The type and the first byte of what follows, as they are read.
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

  [[nodiscard]] bool match_ipv4(std::span<const std::byte> frame, PlainDatagram& found) const noexcept {
    const std::byte* const ip = frame.data() + ip_at_;
    const bool plain = ipv4_ != 0 && load<std::uint32_t>(ip + 16) == ipv4_ && (load16(ip + 6) & 0x3FFFU) == 0 &&
                       load8(ip + 9) == static_cast<std::uint8_t>(IpProtocol::udp);
    if (!plain) return false;
    const std::uint32_t total = load16(ip + 2);
    constexpr std::uint32_t kHead = kIpv4Bytes;
    const std::uint32_t from = load32(ip + 12);
    const bool host = from != 0 && from >> 24U != 127 && from >> 28U != 0xE && from != 0xFFFFFFFFU;
    if (!host || total < kIpv4Bytes + kUdpBytes || total > frame.size() - ip_at_) return false;
    if (finish(sum_of_words<kIpv4Bytes>(ip)) != 0) return false;
    constexpr std::uint64_t kMapped = 0xFFFF0000;
    found.from = {0, kMapped | std::uint64_t{load<std::uint32_t>(ip + 12)} << 32U};
    found.ecn = static_cast<Ecn>(load8(ip + 1) & 3U);
    found.udp_besides = sum_of_words<8>(ip + 12);
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
    // Unspecified, loopback and mapped addresses begin with 64 zeros, groups with 0xFF: the parser's.
    if (found.from[0] == 0 || load8(ip + 8) == 0xFF) return false;
    found.ecn = static_cast<Ecn>(load8(ip + 1) >> 4U & 3U);
    found.udp_besides = sum_of_words<32>(ip + 8);
    return match_udp(ip + kIpv6Bytes, static_cast<std::uint32_t>(ip_at_ + kIpv6Bytes), bytes, found);
  }

  /// `offset`: of UDP's header in the frame; `bytes`: what IP says is left.
  [[nodiscard]] bool match_udp(const std::byte* udp, std::uint32_t offset, std::uint32_t bytes,
                               PlainDatagram& found) const noexcept {
    found.from_port = load16(udp);
    if (load16(udp + 2) != port_ || found.from_port == 0 || load16(udp + 4) != bytes || load16(udp + 6) == 0)
      return false;
    found.body_offset = offset + std::uint32_t{kUdpBytes};
    found.body_bytes = bytes - std::uint32_t{kUdpBytes};
    found.udp_besides += __builtin_bswap16(static_cast<std::uint16_t>(IpProtocol::udp)) + __builtin_bswap32(bytes) +
                         sum_of_words<kUdpBytes>(udp);
    return true;
  }

  template <class T>
  [[nodiscard]] static T load(const std::byte* at) noexcept {
    T value{};
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint64_t mac_ = 0;
  std::uint32_t ipv4_ = 0;  // 0: none
  std::uint16_t vlan_ = 0;
  std::uint16_t port_ = 0;  // 0: none
  std::size_t ip_at_ = kEthernetBytes;
  std::array<std::uint64_t, 2> ipv6_{};  // 0: none
};

}  // namespace tributary::transport::ethernet
