#pragma once
// The port under the packet protocol: it sends and receives UDP datagrams in bursts. Kernel sockets (transport/udp), a
// DPDK device (transport/dpdk) and the tests' simulated network are ports; the protocol above knows none of them.
//
// Threads: a port belongs to one thread. Only wake() may be called from anywhere.
#include <array>
#include <bit>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tributary/transport/channel.h"

namespace tributary::transport::packet {

/// The address of a datagram's sender or receiver. IPv4 is mapped into IPv6 (::ffff:a.b.c.d). `ip` is in network byte
/// order, `port` is not.
struct PacketAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
  friend auto operator<=>(const PacketAddress&, const PacketAddress&) = default;
  /// Compares words: for an array the compiler would call memcmp().
  friend bool operator==(const PacketAddress& a, const PacketAddress& b) noexcept {
    const auto [a_low, a_high] = std::bit_cast<std::array<std::uint64_t, 2>>(a.ip);
    const auto [b_low, b_high] = std::bit_cast<std::array<std::uint64_t, 2>>(b.ip);
    return ((a_low ^ b_low) | (a_high ^ b_high)) == 0 && a.port == b.port;
  }
};

/// One datagram that has come. `bytes` is UDP's payload; it may be written to (decryption in place).
struct ReceivedPacket {
  PacketAddress from;
  std::span<std::byte> bytes;
  bool congestion_experienced = false;  // the ECN mark of RFC 3168
  bool refused = false;                 // not from `from`, but about it: the network says (ICMP port unreachable) that
                                        // nobody is there, and quotes the beginning of our packet in `bytes`
  // Only with `refused`, and not 0: the network says instead that the packet was too long (ICMP fragmentation needed,
  // ICMPv6 packet too big), and that the path carries so many bytes, the header of IP included.
  std::uint32_t path_bytes = 0;
  // When the device or the system took the datagram in, if known: so the time in its queue, waiting for this thread, is
  // not mistaken for time in the network.
  TimePoint arrived{};
  void* buffer = nullptr;  // for keep(); nullptr: the bytes cannot be kept
  // Set only after leave_checksums(): the reader of the bytes must verify UDP's checksum, in the same pass. The value
  // is the sum of all that the checksum covers besides the bytes (RFC 1071, not folded).
  std::optional<std::uint64_t> udp_besides;
};

/// The most bytes that a send()'s header may have.
inline constexpr std::size_t kPortHeaderBytesMax = 1024;

/// The bytes of a packet's own header.
inline constexpr std::size_t kPacketHeaderBytes = 64;

/// A datagram that is a whole frame. Frame header and payload may go to others, too, so facts about them that were
/// found once come along.
struct FrameDatagram {
  std::span<const std::byte, kPacketHeaderBytes> packet_header;  // copied, as the frame header; was written in words
  std::span<const std::byte, kFrameHeaderBytes> frame_header;
  std::span<const std::byte> payload;  // lent until flush(), as in send()
  std::uint64_t frame_header_sum = 0;  // as udp_besides
  std::size_t payload_place = 0;       // payload_place(payload.data())
};

/// The port's own counts, in datagrams. A port may have none: a device has counters elsewhere.
struct PortCounts {
  // Taken by send(), but never sent:
  std::uint64_t unsent_full = 0;      // the system takes no more for now
  std::uint64_t unsent_too_long = 0;  // for the first link of the path
  std::uint64_t unsent_no_way = 0;    // no route there, or no address of that family
  std::uint64_t unsent_other = 0;
  // Several datagrams in one message, which the system or the device cuts or has joined:
  std::uint64_t joined_sent = 0, joined_received = 0;
  std::uint64_t joined_refused = 0;  // that should have been joined, and went one by one
};

class PacketPort {
 public:
  virtual ~PacketPort() = default;
  /// Fills `into` from its beginning with the datagrams that have come, without waiting; returns how many. They stay
  /// valid until the next receive().
  [[nodiscard]] virtual std::size_t receive(std::span<ReceivedPacket> into) = 0;
  /// From now on the caller verifies UDP's checksum of packets that have `udp_besides`.
  virtual void leave_checksums() noexcept {}
  /// For ports whose buffers can stay with the reader. The bytes of a packet that the last receive() has shown stay
  /// where they are, until give_back() was called as often as this. False: no more buffers can be spared; copy the
  /// bytes.
  [[nodiscard]] virtual bool keep(void* /*buffer*/) noexcept { return false; }
  virtual void give_back(void* /*buffer*/) noexcept {}
  /// Takes one datagram, `header` (at most kPortHeaderBytesMax) then `payload`. The header is copied now. The payload
  /// may be read until flush() has returned; until then it does not change, and no other payload lies there. False: the
  /// port is full; flush() and try again in a later turn. The datagram is marked ECT(0), unless the port was told not
  /// to.
  [[nodiscard]] virtual bool send(const PacketAddress& to, std::span<const std::byte> header,
                                  std::span<const std::byte> payload) = 0;
  /// Likewise for a whole frame; for ports that have a shorter way for these.
  [[nodiscard]] virtual bool send_frame(const PacketAddress& to, const FrameDatagram& frame);
  /// Hands all datagrams that were taken to the network. Those that the network does not take are dropped and counted:
  /// the protocol sends them again.
  virtual void flush() = 0;
  /// Waits until a datagram comes, wake() is called, or `limit` is over. A port that cannot sleep returns at once.
  virtual void wait(Duration limit) = 0;
  /// A descriptor for another port's wait() to watch: it is readable when a datagram has come. -1: there is none.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
  /// Makes wait() end when one of these is readable, too: they belong to other ports of the same thread. A port without
  /// a descriptor sleeps shortly, if at all, and need not look at them.
  virtual void watch(std::span<const int> /*descriptors*/) {}
  /// Ends a wait(), or the next one. Any thread.
  virtual void wake() noexcept = 0;
  /// The longest datagram to `to` that needs no fragments, by route or device; UDP's payload, without headers.
  [[nodiscard]] virtual std::size_t datagram_bytes_max(const PacketAddress& to) = 0;
  /// Believes a refusal's path_bytes about the path to `to`: the caller has seen that it quotes a packet that was sent.
  virtual void believe_path(const PacketAddress& /*to*/, std::uint32_t /*path_bytes*/) {}
  [[nodiscard]] virtual PortCounts counts() const noexcept { return {}; }
  /// The port's address, with the port that was chosen for port 0. An unspecified ip means all of this host's.
  [[nodiscard]] virtual PacketAddress local() const = 0;
};

}  // namespace tributary::transport::packet
