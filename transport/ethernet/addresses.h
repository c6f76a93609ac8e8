#pragma once
// Hardware and IP addresses, and facts about them. An IPv4 address is kept as IPv6's ::ffff:a.b.c.d.
#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tributary/protocol/error.h"

namespace tributary::transport::ethernet {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  friend auto operator<=>(const MacAddress&, const MacAddress&) = default;
  /// True for the address of a group of stations. The broadcast address is such an address, too.
  [[nodiscard]] bool is_group() const noexcept { return (bytes[0] & 1U) != 0; }
};
inline constexpr MacAddress kBroadcastMac{{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}};

using IpAddress = std::array<std::uint8_t, 16>;

/// True for an IPv4 address (::ffff:0:0/96); false for IPv6.
[[nodiscard]] inline bool is_ipv4(const IpAddress& ip) noexcept {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(ip.data(), kMapped.data(), kMapped.size()) == 0;
}
/// Takes `ipv4` in the byte order of a frame. One store writes the address, so that a read of the whole address does
/// not wait.
[[nodiscard]] inline IpAddress mapped(const std::array<std::uint8_t, 4>& ipv4) noexcept {
  using Halves [[gnu::vector_size(16)]] = std::uint64_t;
  const auto last = std::bit_cast<std::uint32_t>(ipv4);
  return std::bit_cast<IpAddress>(Halves{0, std::uint64_t{0xFFFF'0000U} | std::uint64_t{last} << 32U});
}
[[nodiscard]] std::array<std::uint8_t, 4> ipv4_of(const IpAddress& ip) noexcept;
/// True for :: and 0.0.0.0.
[[nodiscard]] bool is_unspecified(const IpAddress& ip) noexcept;
/// True for the address of a group of hosts, or of all hosts (255.255.255.255).
[[nodiscard]] bool is_multicast(const IpAddress& ip) noexcept;
/// True for 127.0.0.0/8 and ::1, which never appear in a network.
[[nodiscard]] bool is_loopback(const IpAddress& ip) noexcept;
/// True for fe80::/10.
[[nodiscard]] bool is_link_local(const IpAddress& ip) noexcept;

/// Returns fe80:: with the modified EUI-64 of `mac` (RFC 4291, appendix A).
[[nodiscard]] IpAddress link_local_of(const MacAddress& mac) noexcept;
/// Returns ff02::1:ffXX:XXXX, to which a neighbour solicitation for `ip` goes (RFC 4291, 2.7.1).
[[nodiscard]] IpAddress solicited_node_of(const IpAddress& ip) noexcept;
/// Returns ff02::1.
[[nodiscard]] IpAddress all_nodes() noexcept;
/// The group of stations that receives the packets for an IPv6 multicast address (RFC 2464, 7).
[[nodiscard]] MacAddress multicast_mac_of(const IpAddress& ip) noexcept;

/// An address and the number of its leading bits that the network shares. For IPv4 these are bits of the mapped
/// address: 96 to 128.
struct Prefix {
  IpAddress address{};
  unsigned bits = 0;
  [[nodiscard]] bool contains(const IpAddress& ip) const noexcept;
};

[[nodiscard]] Result<IpAddress> parse_ip(std::string_view text);
/// Parses "10.0.0.1/24" or "fd00::1/64". The text of Errc::bad_argument names the mistake.
[[nodiscard]] Result<Prefix> parse_prefix(std::string_view text);
[[nodiscard]] std::string to_string(const IpAddress& ip);
[[nodiscard]] std::string to_string(const MacAddress& mac);

}  // namespace tributary::transport::ethernet
