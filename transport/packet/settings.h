#pragma once
// The settings of a packet transport, and its counts.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/packet/congestion.h"
#include "transport/packet/port.h"
#include "transport/packet/wire.h"
#include "tributary/transport/link_keys.h"

namespace tributary::transport::packet {

/// Bytes of the longest datagram that every path carries: IPv6's 1280 bytes without the headers of IPv6 and UDP.
inline constexpr std::size_t kDatagramBytesMin = 1232;
inline constexpr std::size_t kDatagramBytesMax = 65000;
/// The most bytes of frame headers and small payloads that are copied into one packet.
inline constexpr std::size_t kCopiedBytesMax = kPortHeaderBytesMax - kPacketHeaderBytes;

struct PacketSettings {
  std::uint32_t frames_queued_max = 1024;  // most frames in a channel's queue; when it is full, send() returns false
  std::uint32_t connections_max = 16384;   // open connections; a further peer is refused, and falls back
  std::uint32_t half_open_max = 1024;      // open connections whose first packet is still awaited: see half_open.h
  std::size_t window_bytes = 1U << 20;     // bytes that a peer may send before this side reads them
  std::size_t window_bytes_total = 64U << 20;  // bytes of all connections' windows together
  std::size_t kept_bytes_max = 64U << 20;      // bytes of memory for data that came early or is not wanted yet
  std::size_t datagram_bytes_max = 16384;      // most bytes of a sent datagram, even if the path carries more
  Duration acknowledge_within = std::chrono::microseconds(250);  // time in which a lone packet is acknowledged: an
                                                                 // answer may carry it
  Duration timeout_initial = std::chrono::milliseconds(50);      // time-out before a round trip was measured
  Duration timeout_min = std::chrono::milliseconds(4);
  Duration timeout_max = std::chrono::milliseconds(400);
  Duration keepalive = std::chrono::seconds(1);       // silence after which the peer is asked for an answer
  Duration peer_timeout = std::chrono::seconds(5);    // silence after which a peer that was asked counts as gone
  Duration linger{};                                  // time for which the transport's end waits for
                                                      // unacknowledged frames
  Duration busy_poll{};                               // poll(wait) spins for this long before it sleeps
  Duration spin_max = std::chrono::microseconds(20);  // without busy_poll: spins if most waits end within this time
  bool short_ways = true;                             // true: sends and takes packets of one whole frame by
                                                      // shorter code; tests compare both
  CongestionSettings congestion;
  std::shared_ptr<LinkKeys> keys;  // secrets that seal the connections; nullptr: no connection is sealed
  std::uint64_t seed = 0;          // seed of connection ids, cookies and random numbers, for tests; 0: random
};

/// Counts since the start. Read on the transport's thread.
struct PacketStatistics {
  std::uint64_t frames_sent = 0, frames_received = 0;
  std::uint64_t frames_in_place = 0;  // received frames that were taken where they lay
  std::uint64_t packets_sent = 0, packets_received = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;  // bytes of datagrams
  std::uint64_t short_sent = 0, short_received = 0;  // packets of one whole frame that took the short way
  std::uint64_t packets_given_up = 0;                // packets that counted as lost
  std::uint64_t packets_came_late = 0;               // packets counted as lost that only came late
  std::uint64_t packets_sent_again = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t repeats = 0;             // packets that had come before
  std::uint64_t no_room = 0;             // packets dropped because no memory was left for them
  std::uint64_t marked = 0;              // packets that came with the congestion mark
  std::uint64_t senseless = 0;           // packets with impossible fields
  std::uint64_t unknown_connection = 0;  // packets for connections that do not exist here
  std::uint64_t cookies_wrong = 0;
  std::uint64_t forged = 0;    // sealed packets whose authenticator is wrong
  std::uint64_t unsealed = 0;  // packets without a seal where only sealed packets are allowed
  std::uint64_t resets_sent = 0, resets_received = 0;
  std::uint64_t peers_silent = 0;  // connections that ended because the peer did not answer
  std::uint64_t accepted = 0;
  std::uint64_t refused_full = 0;    // connections refused because of connections_max
  std::uint64_t control_unsent = 0;  // packets of openings and ends, dropped because the port was full
  PortCounts port;
  std::uint64_t displaced = 0;  // half open or departing connections that made place for newer ones
  std::array<std::uint64_t, kPacketRejects> rejects{};  // datagrams that are no packets, by PacketReject
  std::array<std::uint64_t, 9> frame_rejects{};         // channels closed for a bad frame, by FrameReject
  std::size_t connections = 0;                          // connections open now
  std::size_t deadlines_max = 0;                        // the most deadlines that were waiting at the same time
};

}  // namespace tributary::transport::packet
