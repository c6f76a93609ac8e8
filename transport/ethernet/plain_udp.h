#pragma once
// The datagrams that a port waits for, told from all other frames by a few comparisons: untagged, IPv4 without options
// and fragments, UDP with a checksum, to one address and port. What is not one of them is for parser.h, which says what
// it is; what is one, it would say the same of.
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
  std::uint32_t from = 0;  // as it stands in the frame
  std::uint16_t from_port = 0;
  Ecn ecn = Ecn::not_capable;
  std::uint32_t body_offset = 0;
  std::uint32_t body_bytes = 0;
  PartialSum udp_besides = 0;  // of all that UDP's checksum, which is not verified, covers besides the body
};

/// mapped(), for an address as it stands in a frame: in two stores, as it is read soon.
inline void store_mapped(IpAddress& to, std::uint32_t from) noexcept {
  constexpr std::uint64_t kPrefix = 0xFFFF0000;
  const std::array<std::uint64_t, 2> words{0, kPrefix | std::uint64_t{from} << 32U};
  std::memcpy(to.data(), words.data(), sizeof words);
}

class PlainUdp {
 public:
  /// None matches.
  PlainUdp() = default;
  PlainUdp(const MacAddress& mac, const IpAddress& ipv4, std::uint16_t port) noexcept : port_(port) {
    std::memcpy(&mac_, mac.bytes.data(), mac.bytes.size());
    std::memcpy(&ip_, ipv4.data() + 12, sizeof ip_);
  }

  /// False: `found` means nothing.
  [[nodiscard]] bool match(std::span<const std::byte> frame, PlainDatagram& found) const noexcept {
    constexpr std::size_t kHeads = kEthernetBytes + kIpv4Bytes + kUdpBytes;
    constexpr std::uint64_t kSix = 0xFFFF'FFFF'FFFF;
    if (frame.size() < kHeads) return false;
    const std::byte* const at = frame.data();
    const std::byte* const ip = at + kEthernetBytes;
    const std::byte* const udp = ip + kIpv4Bytes;
    const auto from_mac = load<std::uint64_t>(at + 6) & kSix;
    const bool ours = (load<std::uint64_t>(at) & kSix) == mac_ && load<std::uint32_t>(ip + 16) == ip_ &&
                      load16(udp + 2) == port_ && port_ != 0;
    constexpr std::uint32_t kIpv4WithoutOptions = 0x450008;  // of the type and the first byte, as they are read
    const bool plain = (load<std::uint32_t>(at + 12) & 0xFFFFFFU) == kIpv4WithoutOptions &&
                       (load16(ip + 6) & 0x3FFFU) == 0 && load8(ip + 9) == static_cast<std::uint8_t>(IpProtocol::udp);
    if (!ours || !plain || from_mac == mac_ || (from_mac & 1U) != 0) return false;
    const std::uint32_t total = load16(ip + 2);
    const std::uint32_t udp_bytes = load16(udp + 4);
    const std::uint32_t from = load32(ip + 12);
    const bool host = from != 0 && from >> 24U != 127 && from >> 28U != 0xE && from != 0xFFFFFFFFU;
    const bool fits =
        total >= kIpv4Bytes + kUdpBytes && total <= frame.size() - kEthernetBytes && udp_bytes == total - kIpv4Bytes;
    if (!host || !fits || load16(udp) == 0 || load16(udp + 6) == 0) return false;
    if (finish(sum_of_words<kIpv4Bytes>(ip)) != 0) return false;
    found.from = load<std::uint32_t>(ip + 12);
    found.from_port = load16(udp);
    found.ecn = static_cast<Ecn>(load8(ip + 1) & 3U);
    found.body_offset = kHeads;
    found.body_bytes = udp_bytes - std::uint32_t{kUdpBytes};
    found.udp_besides = sum_of_words<8>(ip + 12) + __builtin_bswap16(static_cast<std::uint16_t>(IpProtocol::udp)) +
                        __builtin_bswap32(udp_bytes) + sum_of_words<kUdpBytes>(udp);
    return true;
  }

 private:
  template <class T>
  [[nodiscard]] static T load(const std::byte* at) noexcept {
    T value{};
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  std::uint64_t mac_ = 0;
  std::uint32_t ip_ = 0;
  std::uint16_t port_ = 0;  // 0: none
};

}  // namespace tributary::transport::ethernet
