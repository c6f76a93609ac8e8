#pragma once
// The control frames of a well-behaved host on an Ethernet: it answers ARP, neighbour solicitations and pings, finds
// its neighbours, and ignores all other frames. Routers' messages about path MTUs are left to the port, which knows the
// packets that were sent. It does no I/O: the caller passes received frames to answer(), and says where frames to send
// are written.
//
// Any thread may call next_hop(), find() and has(), which take no lock; the other functions are called rarely, and take
// one.
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "transport/ethernet/neighbour_table.h"
#include "transport/ethernet/parser.h"
#include "transport/ethernet/path_mtu.h"
#include "transport/ethernet/rate_limit.h"

namespace tributary::transport::ethernet {

struct HostSettings {
  MacAddress mac;
  std::uint16_t vlan = 0;           // 0: untagged
  std::vector<Prefix> addresses;    // at most one of IPv4 and one of IPv6; with IPv6 a link-local one is added
  std::vector<IpAddress> gateways;  // at most one of IPv4 and one of IPv6, each on the link
  std::uint32_t mtu = 1500;         // bytes of the longest IP packet on the link
  NeighbourSettings neighbours;
  std::uint32_t answers_per_second = 1000;  // answers to ARP requests and neighbour solicitations
  std::uint32_t echoes_per_second = 100;
  std::uint32_t refusals_per_second = 100;
};

/// Counts since the start.
struct HostCounts {
  std::uint64_t arp_answered = 0, ndp_answered = 0, echoes_answered = 0;
  std::uint64_t answers_limited = 0;    // answers that were not given because of answers_per_second
  std::uint64_t control_ignored = 0;    // ARP, ICMP, neighbour discovery: malformed or not for this host
  std::uint64_t address_conflicts = 0;  // times that another station said that it has our address
  std::uint64_t path_mtu_told = 0;
  std::uint64_t refusals_sent = 0;
  NeighbourCounts neighbours;
};

class Host {
 public:
  /// Checks the settings. Errc::bad_argument names the wrong address.
  [[nodiscard]] static Status check(const HostSettings& settings);
  /// The caller must have checked `settings` with check().
  explicit Host(const HostSettings& settings);

  [[nodiscard]] bool has(const IpAddress& to) const noexcept;
  /// The address from which this host sends to `to`; nullopt: the host has no address of that family.
  [[nodiscard]] std::optional<IpAddress> source_for(const IpAddress& to) const noexcept;
  /// Returns `to` if it is on the link, else the gateway for `to`; nullopt if there is no gateway.
  [[nodiscard]] std::optional<IpAddress> next_hop(const IpAddress& to) const noexcept;
  [[nodiscard]] NeighbourTable& neighbours() noexcept { return neighbours_; }
  /// Bytes of the longest IP packet to `to`.
  [[nodiscard]] std::uint32_t path_mtu(const IpAddress& to, TimePoint now) const {
    return path_mtu_.get(to, settings_.mtu, now);
  }
  /// Takes a router's message that packets to `to` may have at most `bytes`. The caller must have checked that the
  /// router quotes a datagram that was sent, because this host does not see the ports' datagrams. Returns false if the
  /// host does not believe the router.
  bool believe_path_mtu(const IpAddress& to, std::uint32_t bytes, TimePoint now);
  [[nodiscard]] const HostSettings& settings() const noexcept { return settings_; }
  /// The groups whose frames the device must take, so that neighbour solicitations of IPv6 arrive.
  [[nodiscard]] std::vector<MacAddress> multicast_groups() const;

  /// Takes an ARP, ICMP or ICMPv6 frame. Writes the answer to `out`, which must not overlap the frame, and returns its
  /// length; 0: there is no answer.
  [[nodiscard]] std::size_t answer(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                                   std::span<std::byte> out);
  /// Writes ICMP's "port unreachable" for a datagram to a port where no process listens. Returns 0 if the limit on the
  /// rate forbids the message.
  [[nodiscard]] std::size_t refuse(const Frame& datagram, std::span<const std::byte> bytes, TimePoint now,
                                   std::span<std::byte> out);
  /// Writes a question about a neighbour that is due now.
  [[nodiscard]] std::size_t write_probe(const NeighbourProbe& probe, std::span<std::byte> out) const;
  [[nodiscard]] std::size_t addresses_count() const noexcept { return own_.size(); }
  /// Announces our `number`th address, so that other stations replace an outdated entry for it (RFC 5227, 2.3; RFC
  /// 4861, 7.2.6); 0: there is no such address.
  [[nodiscard]] std::size_t write_announcement(std::size_t number, std::span<std::byte> out) const;
  [[nodiscard]] HostCounts counts() const;

 private:
  [[nodiscard]] std::size_t answer_arp(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                                       std::span<std::byte> out);
  [[nodiscard]] std::size_t answer_icmp(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                                        std::span<std::byte> out);
  [[nodiscard]] std::size_t answer_icmp6(const Frame& frame, std::span<const std::byte> bytes, TimePoint now,
                                         std::span<std::byte> out);
  [[nodiscard]] std::size_t answer_solicitation(const Frame& frame, std::span<const std::byte> message, TimePoint now,
                                                std::span<std::byte> out);
  void hear_advertisement(const Frame& frame, std::span<const std::byte> message, TimePoint now);
  [[nodiscard]] std::size_t answer_echo(const Frame& frame, std::span<const std::byte> message, TimePoint now,
                                        std::span<std::byte> out);
  [[nodiscard]] bool on_link(const IpAddress& ip) const noexcept;
  [[nodiscard]] bool may_answer(RateLimit& limit, TimePoint now);
  std::size_t ignore() noexcept;

  const HostSettings settings_;
  std::vector<Prefix> own_;  // all own addresses, with the link-local one
  NeighbourTable neighbours_;
  PathMtu path_mtu_;
  mutable std::mutex mutex_;  // guards the limits and the counts
  RateLimit answers_;
  RateLimit echoes_;
  RateLimit refusals_;
  HostCounts counts_;
};

}  // namespace tributary::transport::ethernet
