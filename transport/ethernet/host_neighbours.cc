// Class Host: learns its neighbours' addresses, and tells them its own: ARP (RFC 826, RFC 5227) and neighbour discovery
// (RFC 4861, with the checks of its sections 7.1.1 and 7.1.2).
#include "transport/ethernet/bytes.h"
#include "transport/ethernet/control_writer.h"
#include "transport/ethernet/host.h"
#include "transport/ethernet/icmp.h"

namespace tributary::transport::ethernet {
namespace {

struct Options {
  bool valid = true;
  std::optional<MacAddress> address;
};

/// Finds the first option of that kind with a link-layer address. Lengths are in units of 8 bytes; a message with a
/// length of 0 is wrong.
Options read_options(std::span<const std::byte> options, NeighbourOption wanted) {
  Options found;
  while (options.size() >= kAddressOptionBytes) {
    const std::size_t bytes = std::size_t{load8(options.data() + 1)} * 8;
    if (bytes == 0 || bytes > options.size()) return {.valid = false};
    if (load8(options.data()) == static_cast<std::uint8_t>(wanted) && !found.address) {
      const MacAddress mac{load_array<6>(options.data() + 2)};
      if (mac.is_group()) return {.valid = false};
      found.address = mac;
    }
    options = options.subspan(bytes);
  }
  found.valid = options.empty();
  return found;
}

}  // namespace

std::size_t Host::answer_arp(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                             std::span<std::byte> out) {
  const std::byte* const arp = bytes.data() + frame.body_offset;
  const std::uint16_t operation = load16(arp + 6);
  const Station sender{{load_array<6>(arp + 8)}, mapped(load_array<4>(arp + 14))};
  const IpAddress target = mapped(load_array<4>(arp + 24));
  const bool is_probe = is_unspecified(sender.ip);  // RFC 5227's "does anybody have this address?"
  if (sender.mac.is_group() || sender.mac == settings_.mac || (!is_probe && !on_link(sender.ip))) return ignore();
  if (has(sender.ip)) {
    const std::lock_guard lock(mutex_);
    ++counts_.address_conflicts;
    return 0;
  }
  if (operation == static_cast<std::uint16_t>(ArpOperation::reply)) {
    neighbours_.heard(sender.ip, sender.mac, {.is_answer = has(target)}, now);
    return 0;
  }
  if (operation != static_cast<std::uint16_t>(ArpOperation::request)) return ignore();
  if (!is_probe) neighbours_.heard(sender.ip, sender.mac, {.asks_for_us = has(target)}, now);
  if (!has(target)) return 0;
  if (!may_answer(answers_, now)) return 0;
  const std::size_t written =
      write_arp(out, settings_.vlan, ArpOperation::reply, {settings_.mac, target}, sender, sender.mac);
  const std::lock_guard lock(mutex_);
  ++counts_.arp_answered;
  return written;
}

std::size_t Host::answer_solicitation(const Frame& frame, std::span<const std::byte> message, TimePoint now,
                                      std::span<std::byte> out) {
  if (frame.hop_limit != kNeighbourHopLimit || message.size() < kNeighbourBytes) return ignore();
  const IpAddress target = load_array<16>(message.data() + 8);
  const Options options = read_options(message.subspan(kNeighbourBytes), NeighbourOption::source_address);
  const bool is_probe = is_unspecified(frame.from);  // duplicate address detection
  // An IPv6 message must not carry a mapped address (RFC 6890): this host would take it for a message about an IPv4
  // address.
  if (!options.valid || is_multicast(target) || is_ipv4(target) || !has(target)) return ignore();
  if (is_probe && (options.address || frame.to != solicited_node_of(target))) return ignore();
  if (!is_probe && !on_link(frame.from)) return ignore();
  if (options.address && *options.address != settings_.mac && !has(frame.from)) {
    neighbours_.heard(frame.from, *options.address, {.asks_for_us = true}, now);
  }
  if (!may_answer(answers_, now)) return 0;
  const Station to = is_probe ? Station{multicast_mac_of(all_nodes()), all_nodes()}
                              : Station{options.address.value_or(frame.from_mac), frame.from};
  const std::size_t written = write_advertisement(out, settings_.vlan, {settings_.mac, target}, to, !is_probe);
  const std::lock_guard lock(mutex_);
  ++counts_.ndp_answered;
  return written;
}

void Host::hear_advertisement(const Frame& frame, std::span<const std::byte> message, TimePoint now) {
  if (frame.hop_limit != kNeighbourHopLimit || message.size() < kNeighbourBytes) {
    ignore();
    return;
  }
  const std::uint32_t flags = load32(message.data() + 4);
  const IpAddress target = load_array<16>(message.data() + 8);
  const Options options = read_options(message.subspan(kNeighbourBytes), NeighbourOption::target_address);
  const bool solicited = (flags & kAdvertisementSolicited) != 0;
  if (!options.valid || is_multicast(target) || is_ipv4(target) || (solicited && is_multicast(frame.to)) ||
      !on_link(target)) {
    ignore();
    return;
  }
  if (has(target)) {
    if (options.address == settings_.mac) return;  // our own announcement, sent back
    const std::lock_guard lock(mutex_);
    ++counts_.address_conflicts;
    return;
  }
  // An answer to one station may leave out the link-layer address (RFC 4861, 4.4): then the frame's sender address
  // counts.
  const MacAddress mac = options.address.value_or(frame.from_mac);
  const bool may_replace = (flags & kAdvertisementOverride) != 0;
  neighbours_.heard(target, mac, {.is_answer = solicited, .may_replace = may_replace}, now);
}

}  // namespace tributary::transport::ethernet
