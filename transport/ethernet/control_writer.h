#pragma once
// Writes whole ARP, neighbour discovery and ICMP frames. Each function returns the frame's length, or 0 if `out` is too
// small.
#include <optional>
#include <span>

#include "transport/ethernet/addresses.h"
#include "transport/ethernet/frame.h"

namespace tributary::transport::ethernet {

struct IcmpKind {
  std::uint8_t type = 0;
  std::uint8_t code = 0;
};

struct Station {
  MacAddress mac;
  IpAddress ip{};
};

enum class ArpOperation : std::uint16_t { request = 1, reply = 2 };
/// `target.mac` stands in the message; `to` is the station that gets the frame.
[[nodiscard]] std::size_t write_arp(std::span<std::byte> out, std::uint16_t vlan, ArpOperation operation,
                                    const Station& sender, const Station& target, const MacAddress& to);

/// Asks for `target`. The question goes to the station `at`, or to all stations that may have the address.
[[nodiscard]] std::size_t write_solicitation(std::span<std::byte> out, std::uint16_t vlan, const Station& sender,
                                             const IpAddress& target, const std::optional<MacAddress>& at);
/// Says that `sender` has its address. `solicited`: the message is an answer to one station.
[[nodiscard]] std::size_t write_advertisement(std::span<std::byte> out, std::uint16_t vlan, const Station& sender,
                                              const Station& to, bool solicited);
/// An ICMP or ICMPv6 message; `rest` are its bytes after the checksum.
[[nodiscard]] std::size_t write_icmp(std::span<std::byte> out, std::uint16_t vlan, const Station& from,
                                     const Station& to, IcmpKind kind, std::uint8_t hop_limit,
                                     std::span<const std::byte> rest);

}  // namespace tributary::transport::ethernet
