// Class Host: refuses datagrams to ports without a listener, and takes routers' messages about its own datagrams.
#include <algorithm>
#include <cstring>

#include "transport/ethernet/control_writer.h"
#include "transport/ethernet/host.h"
#include "transport/ethernet/icmp.h"

namespace tributary::transport::ethernet {

/// Believes only messages about hosts behind a router: on the link itself, each packet that fits the link arrives.
bool Host::believe_path_mtu(const IpAddress& to, std::uint32_t bytes, TimePoint now) {
  const bool believed = !on_link(to) && path_mtu_.told(to, bytes, now);
  const std::lock_guard lock(mutex_);
  ++(believed ? counts_.path_mtu_told : counts_.control_ignored);
  return believed;
}

std::size_t Host::refuse(const Frame& datagram, std::span<const std::byte> bytes, TimePoint now,
                         std::span<std::byte> out) {
  constexpr std::size_t kQuotedMax = 528;  // keeps IPv4's packet within 576 bytes (RFC 1812, 4.3.2.3)
  constexpr std::size_t kUnused = 4;
  if (!may_answer(refusals_, now)) return 0;
  const bool ipv4 = is_ipv4(datagram.to);
  const std::size_t ip_at = datagram.body_offset - kUdpBytes - (ipv4 ? kIpv4Bytes : kIpv6Bytes);
  const std::size_t end = std::size_t{datagram.body_offset} + datagram.body_bytes;
  std::array<std::byte, kUnused + kQuotedMax> rest{};
  const std::size_t quoted = std::min(kQuotedMax, end - ip_at);
  std::memcpy(rest.data() + kUnused, bytes.data() + ip_at, quoted);
  const IcmpKind kind =
      ipv4 ? IcmpKind{kIcmpUnreachable, kIcmpPortUnreachable} : IcmpKind{kIcmp6Unreachable, kIcmp6PortUnreachable};
  const std::size_t written =
      write_icmp(out, settings_.vlan, {settings_.mac, datagram.to}, {datagram.from_mac, datagram.from}, kind, kHopLimit,
                 std::span(rest).first(kUnused + quoted));
  const std::lock_guard lock(mutex_);
  ++counts_.refusals_sent;
  return written;
}

}  // namespace tributary::transport::ethernet
