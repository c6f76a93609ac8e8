#include "tributary/transport/source.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace tributary::transport {
namespace {

constexpr std::size_t kTextMax = INET6_ADDRSTRLEN;

/// Returns "10.0.0.1" for "10.0.0.1:7471" and for "10.0.0.1"; "::1" for "[::1]:7471" and for "::1".
std::string_view host_part(std::string_view text) noexcept {
  if (text.starts_with('[')) return text.substr(1, std::min(text.find(']'), text.size()) - 1);
  const std::size_t colon = text.find(':');
  const bool one_colon = colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos;
  return one_colon ? text.substr(0, colon) : text;
}

/// FNV-1a
Source source_of_name(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return {hash};
}

}  // namespace

Source source_of(std::string_view peer) noexcept {
  std::string_view host = host_part(peer);
  host = host.substr(0, host.find('%'));  // "fe80::1%eth0"
  if (host.size() >= kTextMax) return source_of_name(host);
  std::array<char, kTextMax> text{};
  std::ranges::copy(host, text.begin());
  std::array<std::byte, 16> address{};
  if (::inet_pton(AF_INET6, text.data(), address.data()) == 1) return tributary::source_of(address);
  if (::inet_pton(AF_INET, text.data(), address.data() + 12) != 1) return source_of_name(host);
  address[10] = address[11] = std::byte{0xff};
  return tributary::source_of(address);
}

}  // namespace tributary::transport
