#include "transport/ethernet/host.h"

#include <algorithm>
#include <array>

#include "transport/ethernet/bytes.h"
#include "transport/ethernet/control_writer.h"
#include "transport/ethernet/icmp.h"

namespace tributary::transport::ethernet {
namespace {

constexpr unsigned kLinkLocalBits = 64;

bool holds(const std::vector<Prefix>& prefixes, const IpAddress& ip) noexcept {
  return std::ranges::find(prefixes, ip, &Prefix::address) != prefixes.end();
}

std::vector<Prefix> with_link_local(const HostSettings& settings) {
  std::vector<Prefix> own = settings.addresses;
  const auto is_ipv6 = [](const Prefix& prefix) { return !is_ipv4(prefix.address); };
  const IpAddress link_local = link_local_of(settings.mac);
  if (std::ranges::any_of(own, is_ipv6) && !holds(own, link_local)) {
    own.push_back({link_local, kLinkLocalBits});
  }
  return own;
}

Status wrong(const IpAddress& ip, const std::string& why) {
  return fail(Errc::bad_argument, to_string(ip) + " " + why);
}

}  // namespace

Status Host::check(const HostSettings& settings) {
  if (settings.addresses.empty()) return fail(Errc::bad_argument, "no address is given");
  std::array<bool, 2> seen{};
  for (const Prefix& own : settings.addresses) {
    if (is_multicast(own.address) || is_unspecified(own.address) || is_loopback(own.address)) {
      return wrong(own.address, "can be no host's address");
    }
    if (std::exchange(seen[is_ipv4(own.address) ? 1 : 0], true))
      return wrong(own.address, "is a second address of its family");
  }
  seen = {};
  for (const IpAddress& gateway : settings.gateways) {
    const auto reaches = [&](const Prefix& own) {
      return is_ipv4(own.address) == is_ipv4(gateway) && (own.contains(gateway) || is_link_local(gateway));
    };
    if (std::ranges::none_of(settings.addresses, reaches)) return wrong(gateway, "is a gateway outside of the network");
    if (holds(settings.addresses, gateway)) return wrong(gateway, "is both an own address and the gateway");
    if (std::exchange(seen[is_ipv4(gateway) ? 1 : 0], true)) return wrong(gateway, "is a second gateway of its family");
  }
  return {};
}

Host::Host(const HostSettings& settings)
    : settings_(settings),
      own_(with_link_local(settings)),
      neighbours_(settings.neighbours),
      answers_(settings.answers_per_second),
      echoes_(settings.echoes_per_second),
      refusals_(settings.refusals_per_second) {}

bool Host::has(const IpAddress& to) const noexcept {
  return holds(own_, to);
}

bool Host::on_link(const IpAddress& ip) const noexcept {
  return std::ranges::any_of(
      own_, [&](const Prefix& own) { return is_ipv4(own.address) == is_ipv4(ip) && own.contains(ip); });
}

std::optional<IpAddress> Host::source_for(const IpAddress& to) const noexcept {
  for (const Prefix& own : own_) {
    if (is_ipv4(own.address) == is_ipv4(to) && (is_link_local(own.address) == is_link_local(to))) return own.address;
  }
  return std::nullopt;
}

std::optional<IpAddress> Host::next_hop(const IpAddress& to) const noexcept {
  if (is_multicast(to)) return std::nullopt;
  if (on_link(to)) return to;
  if (is_link_local(to)) return std::nullopt;
  for (const IpAddress& gateway : settings_.gateways) {
    if (is_ipv4(gateway) == is_ipv4(to)) return gateway;
  }
  return std::nullopt;
}

std::vector<MacAddress> Host::multicast_groups() const {
  std::vector<MacAddress> groups;
  for (const Prefix& own : own_) {
    if (is_ipv4(own.address)) continue;
    groups.push_back(multicast_mac_of(solicited_node_of(own.address)));
    groups.push_back(multicast_mac_of(all_nodes()));
  }
  std::ranges::sort(groups);
  groups.erase(std::ranges::unique(groups).begin(), groups.end());
  return groups;
}

std::size_t Host::ignore() noexcept {
  const std::lock_guard lock(mutex_);
  ++counts_.control_ignored;
  return 0;
}

bool Host::may_answer(RateLimit& limit, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (limit.take(now)) return true;
  ++counts_.answers_limited;
  return false;
}

std::size_t Host::answer(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                         std::span<std::byte> out) {
  if (frame.vlan != settings_.vlan) return ignore();
  switch (frame.kind) {
    case FrameKind::arp:
      return answer_arp(frame, bytes, now, out);
    case FrameKind::icmp:
      return answer_icmp(frame, bytes, now, out);
    case FrameKind::icmp6:
      return answer_icmp6(frame, bytes, now, out);
    case FrameKind::udp:
    case FrameKind::dropped:
      break;
  }
  return ignore();
}

std::size_t Host::answer_icmp(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                              std::span<std::byte> out) {
  const auto message = bytes.subspan(frame.body_offset, frame.body_bytes);
  const std::uint8_t type = load8(message.data());
  const std::uint8_t code = load8(message.data() + 1);
  if (type == kIcmpEchoRequest && code == 0) return answer_echo(frame, message, now, out);
  return ignore();
}

std::size_t Host::answer_icmp6(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                               std::span<std::byte> out) {
  const auto message = bytes.subspan(frame.body_offset, frame.body_bytes);
  const std::uint8_t type = load8(message.data());
  if (load8(message.data() + 1) != 0) return ignore();
  switch (type) {
    case kIcmp6EchoRequest:
      return answer_echo(frame, message, now, out);
    case kNeighbourSolicitation:
      return answer_solicitation(frame, message, now, out);
    case kNeighbourAdvertisement:
      hear_advertisement(frame, message, now);
      return 0;
    default:
      return ignore();
  }
}

std::size_t Host::answer_echo(const Frame& frame, std::span<const std::byte> message, TimePoint now,
                              std::span<std::byte> out) {
  if (!has(frame.to) || is_unspecified(frame.from)) return ignore();  // broadcasts get no answer (RFC 1122, 3.2.2.6)
  if (!may_answer(echoes_, now)) return 0;
  const bool ipv4 = is_ipv4(frame.to);
  const std::size_t bytes = write_icmp(out, settings_.vlan, {settings_.mac, frame.to}, {frame.from_mac, frame.from},
                                       {ipv4 ? kIcmpEchoReply : kIcmp6EchoReply}, kHopLimit, message.subspan(4));
  const std::lock_guard lock(mutex_);
  ++counts_.echoes_answered;
  return bytes;
}

std::size_t Host::write_probe(const NeighbourProbe& probe, std::span<std::byte> out) const {
  const auto source = source_for(probe.ip);
  if (!source) return 0;
  const Station us{settings_.mac, *source};
  if (!is_ipv4(probe.ip)) return write_solicitation(out, settings_.vlan, us, probe.ip, probe.at);
  return write_arp(out, settings_.vlan, ArpOperation::request, us, {{}, probe.ip}, probe.at.value_or(kBroadcastMac));
}

std::size_t Host::write_announcement(std::size_t number, std::span<std::byte> out) const {
  if (number >= own_.size()) return 0;
  const Station us{settings_.mac, own_[number].address};
  if (is_ipv4(us.ip)) return write_arp(out, settings_.vlan, ArpOperation::request, us, {{}, us.ip}, kBroadcastMac);
  return write_advertisement(out, settings_.vlan, us, {multicast_mac_of(all_nodes()), all_nodes()}, false);
}

HostCounts Host::counts() const {
  const std::lock_guard lock(mutex_);
  HostCounts counts = counts_;
  counts.neighbours = neighbours_.counts();
  return counts;
}

}  // namespace tributary::transport::ethernet
