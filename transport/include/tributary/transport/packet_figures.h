#pragma once
// The counts of the packet protocol, the same over the kernel's UDP and over DPDK.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tributary::transport {

/// Counts since the transport's start.
struct PacketFigures {
  std::uint64_t frames_sent = 0, frames_received = 0;
  std::uint64_t frames_in_place = 0;  // received frames whose payloads were not copied
  std::uint64_t packets_sent = 0, packets_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // bytes of datagrams
  std::uint64_t packets_sent_again = 0;
  std::uint64_t packets_came_late = 0;  // sent packets that counted as lost, but only came late
  std::uint64_t repeats = 0;            // received packets that came twice
  std::uint64_t marked = 0;             // packets that came with the congestion mark
  std::uint64_t timeouts = 0;
  std::uint64_t rejected = 0;      // datagrams that are no packets: garbage, damaged, of another version
  std::uint64_t stray = 0;         // packets that belong to no connection
  std::uint64_t no_room = 0;       // packets dropped because no memory was left
  std::uint64_t peers_silent = 0;  // connections that ended because the peer did not answer
  std::uint64_t accepted = 0;
  std::uint64_t refused_full = 0;   // connections refused because of connections_max
  std::uint64_t displaced = 0;      // half open connections, closed because more than half_open_max were open
  std::uint64_t cookies_wrong = 0;  // openings with a cookie that was not made for their address
  std::uint64_t resets_sent = 0, resets_received = 0;
  std::uint64_t forged = 0;     // sealed packets whose authenticator is wrong
  std::uint64_t unsealed = 0;   // packets without a seal where only sealed packets are allowed
  std::size_t connections = 0;  // connections open now
  struct Part {
    std::string_view reason;  // the reason in one word
    std::uint64_t count = 0;
  };
  std::array<Part, 6> rejected_parts{};   // parts of `rejected`, by reason
  std::array<Part, 9> frames_rejected{};  // channels closed because of an impossible frame, by reason
};

}  // namespace tributary::transport
