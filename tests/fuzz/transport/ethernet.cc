// Frames from a hostile link: each datagram that the parser finds lies within the frame, and each answer of the host is
// a correct frame on the same link, to the sender of the request.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/fuzz/transport/script.h"
#include "transport/ethernet/bytes.h"
#include "transport/ethernet/checksum.h"
#include "transport/ethernet/host.h"
#include "transport/ethernet/plain_udp.h"
#include "transport/ethernet/quotation.h"

using namespace tributary::transport::ethernet;

namespace {

constexpr MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x01}};

/// Makes the checksums right, so that the fuzzer reaches the code behind their checks.
void repair(std::span<std::byte> frame) {
  std::size_t at = kEthernetBytes;
  if (frame.size() >= at + kVlanBytes && load16(&frame[12]) == static_cast<std::uint16_t>(EtherType::vlan)) {
    at += kVlanBytes;
  }
  if (frame.size() < at) return;
  const auto type = static_cast<EtherType>(load16(&frame[at - 2]));
  const auto ip = frame.subspan(at);
  if (type == EtherType::ipv4 && ip.size() >= kIpv4Bytes + kIcmpBytes) {
    store16(&ip[10], 0);
    store_checksum(&ip[10], finish(partial_sum(ip.first(kIpv4Bytes))));
    const std::size_t bytes = load16(&ip[2]);
    if (bytes < kIpv4Bytes + kIcmpBytes || bytes > ip.size()) return;
    if (load8(&ip[9]) != static_cast<std::uint8_t>(IpProtocol::icmp)) return;
    const auto message = ip.subspan(kIpv4Bytes, bytes - kIpv4Bytes);
    store16(&message[2], 0);
    store_checksum(&message[2], finish(partial_sum(message)));
  } else if (type == EtherType::ipv6 && ip.size() >= kIpv6Bytes + kIcmpBytes) {
    const std::size_t bytes = load16(&ip[4]);
    if (bytes < kIcmpBytes || bytes > ip.size() - kIpv6Bytes) return;
    const std::uint8_t protocol = load8(&ip[6]);
    if (protocol != static_cast<std::uint8_t>(IpProtocol::icmp6)) return;
    const auto message = ip.subspan(kIpv6Bytes, bytes);
    store16(&message[2], 0);
    const PartialSum pseudo =
        pseudo_header_sum(load_array<16>(&ip[8]), load_array<16>(&ip[24]), protocol, static_cast<std::uint32_t>(bytes));
    store_checksum(&message[2], finish(pseudo + partial_sum(message)));
  }
}

void check_answer(std::span<const std::byte> answer, std::uint16_t vlan) {
  const Frame frame = parse_frame(answer);
  if (frame.kind == FrameKind::dropped || frame.vlan != vlan || frame.from_mac != kOurMac) std::abort();
}

/// PlainUdp decides by a few comparisons; the parser must come to the same result.
void compare(std::span<const std::byte> bytes, std::uint16_t vlan) {
  PlainUdp plain(kOurMac, vlan, 7471);
  plain.add(parse_ip("10.0.0.1").value());
  plain.add(parse_ip("fd00::1").value());
  PlainDatagram found;
  if (!plain.match(bytes, found)) return;
  const Frame frame = parse_frame(bytes, {.udp_later = true});
  IpAddress from;
  found.store_from(from);
  const bool same = frame.kind == FrameKind::udp && frame.vlan == vlan && frame.from == from && frame.to_port == 7471 &&
                    frame.from_port == found.from_port && frame.ecn == found.ecn &&
                    frame.body_offset == found.body_offset && frame.body_bytes == found.body_bytes &&
                    frame.udp_besides && finish(*frame.udp_besides) == finish(found.udp_besides);
  if (!same) std::abort();
}

void show(Host& host, std::span<const std::byte> bytes, CheckedByDevice checked, TimePoint now) {
  const Frame frame = parse_frame(bytes, checked);
  if ((frame.kind == FrameKind::dropped) != (frame.drop != Drop::none)) std::abort();
  if (to_string(frame.drop) == "unknown") std::abort();
  if (frame.kind == FrameKind::dropped) return;
  if (std::size_t{frame.body_offset} + frame.body_bytes > bytes.size()) std::abort();
  std::array<std::byte, 2048> out;
  // Offer little room, too: the host must not write an answer that does not fit.
  for (const std::size_t room : {out.size(), std::size_t{90}, std::size_t{20}}) {
    const auto place = std::make_unique_for_overwrite<std::byte[]>(room);
    const std::span exact(place.get(), room);
    std::size_t length = 0;
    if (frame.kind != FrameKind::udp) {
      length = host.answer(frame, bytes, now, exact);
    } else if (host.has(frame.to)) {  // the ports ask this, too
      length = host.refuse(frame, bytes, now, exact);
    }
    if (length > room) std::abort();
    if (length != 0) check_answer(exact.first(length), host.settings().vlan);
  }
  if (frame.kind != FrameKind::icmp && frame.kind != FrameKind::icmp6) return;
  const auto quotation = parse_quotation(frame, bytes);
  if (quotation && std::size_t{quotation->payload_offset} + quotation->payload_bytes > bytes.size()) std::abort();
}

HostSettings settings() {
  HostSettings settings{.mac = kOurMac};
  settings.addresses = {parse_prefix("10.0.0.1/24").value(), parse_prefix("fd00::1/64").value()};
  settings.gateways = {parse_ip("10.0.0.254").value()};
  settings.neighbours.buckets = 2;
  return settings;
}

}  // namespace

/// The input has frames, each behind its length (two bytes) and a byte that says how it arrives.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tributary::fuzz::Script script({data, size});
  Host host(settings());
  TimePoint now{std::chrono::hours(1)};
  host.neighbours().want(parse_ip("10.0.0.2").value(), now);
  host.neighbours().want(parse_ip("fd00::2").value(), now);
  for (int frames = 0; !script.over() && frames < 64; ++frames) {
    const std::uint8_t how = script.byte();
    const std::size_t length = script.number(2) % 2048;
    const auto taken = script.take(length);
    const std::vector<std::byte> raw(taken.begin(), taken.end());
    // The copy is exactly as long as the frame, so that a sanitizer detects a read past its end.
    const auto exact = std::make_unique<std::byte[]>(raw.size());
    const std::span frame(exact.get(), raw.size());
    std::ranges::copy(raw, frame.begin());
    if ((how & 1U) == 0) repair(frame);
    for (const std::uint16_t vlan : {std::uint16_t{0}, std::uint16_t{7}}) compare(frame, vlan);
    show(host, frame, {.ip = (how & 2U) != 0, .udp = (how & 4U) != 0}, now);
    now += std::chrono::milliseconds(how);
    std::array<NeighbourProbe, 4> probes;
    const std::size_t due = host.neighbours().due(now, probes);
    std::array<std::byte, 128> out;
    for (const NeighbourProbe& probe : std::span(probes).first(due)) {
      if (const std::size_t bytes = host.write_probe(probe, out)) check_answer(std::span(out).first(bytes), 0);
    }
  }
  if (host.counts().neighbours.entries > 16) std::abort();
  const std::uint32_t path = host.path_mtu(parse_ip("192.0.2.1").value(), now);
  if (path < PathMtu::kIpv4Least || path > host.settings().mtu) std::abort();
  return 0;
}
