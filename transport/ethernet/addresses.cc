#include "transport/ethernet/addresses.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

namespace tributary::transport::ethernet {
namespace {

constexpr unsigned kMappedBits = 96;

}  // namespace

std::array<std::uint8_t, 4> ipv4_of(const IpAddress& ip) noexcept {
  return {ip[12], ip[13], ip[14], ip[15]};
}

bool is_unspecified(const IpAddress& ip) noexcept {
  return ip == IpAddress{} || ip == mapped({0, 0, 0, 0});
}

bool is_multicast(const IpAddress& ip) noexcept {
  if (!is_ipv4(ip)) return ip[0] == 0xFF;
  return (ip[12] & 0xF0U) == 0xE0 || ip == mapped({255, 255, 255, 255});
}

bool is_loopback(const IpAddress& ip) noexcept {
  if (is_ipv4(ip)) return ip[12] == 127;
  return ip == IpAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
}

bool is_link_local(const IpAddress& ip) noexcept {
  return ip[0] == 0xFE && (ip[1] & 0xC0U) == 0x80;
}

IpAddress link_local_of(const MacAddress& mac) noexcept {
  const auto& m = mac.bytes;
  const auto universal = static_cast<std::uint8_t>(m[0] ^ 0x02U);
  return {0xFE, 0x80, 0, 0, 0, 0, 0, 0, universal, m[1], m[2], 0xFF, 0xFE, m[3], m[4], m[5]};
}

IpAddress solicited_node_of(const IpAddress& ip) noexcept {
  return {0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xFF, ip[13], ip[14], ip[15]};
}

IpAddress all_nodes() noexcept {
  return {0xFF, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
}

MacAddress multicast_mac_of(const IpAddress& ip) noexcept {
  return {{0x33, 0x33, ip[12], ip[13], ip[14], ip[15]}};
}

bool Prefix::contains(const IpAddress& ip) const noexcept {
  const unsigned whole = bits / 8;
  if (std::memcmp(ip.data(), address.data(), whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xFFU << (8 - bits % 8));
  return ((ip[whole] ^ address[whole]) & mask) == 0;
}

Result<IpAddress> parse_ip(std::string_view text) {
  const std::string copy(text);
  std::array<std::uint8_t, 4> four{};
  if (::inet_pton(AF_INET, copy.c_str(), four.data()) == 1) return mapped(four);
  IpAddress ip{};
  if (::inet_pton(AF_INET6, copy.c_str(), ip.data()) == 1) return ip;
  return fail(Errc::bad_argument, "'" + copy + "' is no IP address");
}

Result<Prefix> parse_prefix(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return fail(Errc::bad_argument, "'" + std::string(text) + "' has no prefix length, as in 10.0.0.1/24");
  }
  const auto ip = parse_ip(text.substr(0, slash));
  if (!ip) return std::unexpected(ip.error());
  const std::string_view length = text.substr(slash + 1);
  const unsigned longest = is_ipv4(*ip) ? 32 : 128;
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bits);
  if (error != std::errc{} || end != length.data() + length.size() || bits > longest) {
    return fail(Errc::bad_argument,
                "'" + std::string(text) + "': the prefix length is no number from 0 to " + std::to_string(longest));
  }
  return Prefix{*ip, is_ipv4(*ip) ? kMappedBits + bits : bits};
}

std::string to_string(const IpAddress& ip) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto four = ipv4_of(ip);
  if (is_ipv4(ip)) {
    ::inet_ntop(AF_INET, four.data(), text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, ip.data(), text.data(), text.size());
  }
  return text.data();
}

std::string to_string(const MacAddress& mac) {
  std::array<char, 18> text{};
  const auto& m = mac.bytes;
  std::snprintf(text.data(), text.size(), "%02x:%02x:%02x:%02x:%02x:%02x", unsigned{m[0]}, unsigned{m[1]},
                unsigned{m[2]}, unsigned{m[3]}, unsigned{m[4]}, unsigned{m[5]});
  return text.data();
}

}  // namespace tributary::transport::ethernet
