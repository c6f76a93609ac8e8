#pragma once
// The port that the packet protocol stands on: it sends and receives UDP datagrams in bursts. Kernel sockets
// (transport/udp), a DPDK device (transport/dpdk) and the tests' simulated network are ports; the protocol above knows
// none of them.
//
// Threads: a port belongs to one thread. wake() alone may be called from anywhere.
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

/// Where datagrams go to and come from. IPv4 is mapped into IPv6 (::ffff:a.b.c.d). Network byte order in `ip` alone.
struct PacketAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
  friend auto operator<=>(const PacketAddress&, const PacketAddress&) = default;
  /// In words: the compiler calls memcmp() for an array.
  friend bool operator==(const PacketAddress& a, const PacketAddress& b) noexcept {
    const auto [a_low, a_high] = std::bit_cast<std::array<std::uint64_t, 2>>(a.ip);
    const auto [b_low, b_high] = std::bit_cast<std::array<std::uint64_t, 2>>(b.ip);
    return ((a_low ^ b_low) | (a_high ^ b_high)) == 0 && a.port == b.port;
  }
};

/// One datagram that has come. `bytes` is what UDP carries; it may be written to (decryption in place).
struct ReceivedPacket {
  PacketAddress from;
  std::span<std::byte> bytes;
  bool congestion_experienced = false;  // the ECN mark of RFC 3168
  bool refused = false;  // not from `from`, but about it: the network answers (ICMP port unreachable) that
                         // nobody is there, and quotes the beginning of what we had sent in `bytes`
  // Only where `refused`: not that, but that the packet was longer than the way carries, which are so many bytes with
  // the header of IP (ICMP fragmentation needed, ICMPv6 packet too big); 0: that nobody is there.
  std::uint32_t path_bytes = 0;
  TimePoint arrived{};     // when the device or the system took it in, where that is known: then waiting
                           // in its queue for this thread is not mistaken for waiting in the network
  void* buffer = nullptr;  // where the bytes lie, for keep(); nullptr: they cannot be kept
  // UDP's checksum is left to who reads the bytes, and to be verified in the same pass: the sum of all that it covers
  // besides them (RFC 1071, not folded). Only after leave_checksums().
  std::optional<std::uint64_t> udp_besides;
};

/// The most bytes of a send()'s header.
inline constexpr std::size_t kPortHeaderBytesMax = 1024;

/// The bytes of a packet's own header.
inline constexpr std::size_t kPacketHeaderBytes = 64;

/// A datagram that is a whole frame. All but its own header may go to others, too, so what is found out about that is
/// told besides.
struct FrameDatagram {
  std::span<const std::byte, kPacketHeaderBytes> packet_header;  // copied, as what follows; was written in words
  std::span<const std::byte, kFrameHeaderBytes> frame_header;
  std::span<const std::byte> payload;  // lent until flush(), as in send()
  std::uint64_t frame_header_sum = 0;  // as udp_besides
  std::size_t payload_place = 0;       // payload_place(payload.data())
};

/// The port's own counts, in datagrams. Not all ports have some: a device has counters elsewhere.
struct PortCounts {
  // Taken by send(), and never sent:
  std::uint64_t unsent_full = 0;      // the system takes no more for now
  std::uint64_t unsent_too_long = 0;  // for the first link of the way
  std::uint64_t unsent_no_way = 0;    // no route there, or no address of that family
  std::uint64_t unsent_other = 0;
  // Several in one message, which the system or the device cuts or has joined:
  std::uint64_t joined_sent = 0, joined_received = 0;
  std::uint64_t joined_refused = 0;  // were to go so, and went one by one
};

class PacketPort {
 public:
  virtual ~PacketPort() = default;
  /// Fills `into` from its beginning with what has come, without waiting; returns how many. They stay valid until the
  /// next receive().
  [[nodiscard]] virtual std::size_t receive(std::span<ReceivedPacket> into) = 0;
  /// The caller verifies UDP's checksum from now on, where receive() has left that to it.
  virtual void leave_checksums() noexcept {}
  /// For ports whose buffers can stay with who reads them. The bytes of a packet that the last receive() has shown stay
  /// where they are, until give_back() was called as often as this. False: no more can be spared; they must be copied.
  [[nodiscard]] virtual bool keep(void* /*buffer*/) noexcept { return false; }
  virtual void give_back(void* /*buffer*/) noexcept {}
  /// Takes one datagram, `header` (at most kPortHeaderBytesMax) then `payload`. The header is copied now. The payload
  /// may be read until `flush()` has returned and not later; until then it does not change, and nothing else lies
  /// there. False: the port is full; flush() and try again in a later turn. Marked ECT(0), unless the port was told not
  /// to.
  [[nodiscard]] virtual bool send(const PacketAddress& to, std::span<const std::byte> header,
                                  std::span<const std::byte> payload) = 0;
  /// The same for a whole frame; for ports that have a shorter way for these.
  [[nodiscard]] virtual bool send_frame(const PacketAddress& to, const FrameDatagram& frame);
  /// Hands all that was taken to the network, as far as it takes it; what it does not take is dropped and counted: the
  /// protocol sends it again.
  virtual void flush() = 0;
  /// Waits until something has come, wake() was called, or `limit` is over. A port that cannot sleep returns at once.
  virtual void wait(Duration limit) = 0;
  /// A descriptor for a wait() to watch: it can be read when something has come. -1: there is none.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
  /// A wait() ends when one of these can be read, too: other ports of the same thread. A port that has no descriptor
  /// itself sleeps shortly, if at all, and need not look at them.
  virtual void watch(std::span<const int> /*descriptors*/) {}
  /// Ends a wait(), or the next one. Any thread.
  virtual void wake() noexcept = 0;
  /// The greatest datagram to `to` that needs no fragments: of the route or device; what UDP carries, without headers.
  [[nodiscard]] virtual std::size_t datagram_bytes_max(const PacketAddress& to) = 0;
  /// Believe what a refusal has said about the way to `to` (path_bytes): it is about a packet that was sent.
  virtual void believe_path(const PacketAddress& /*to*/, std::uint32_t /*path_bytes*/) {}
  [[nodiscard]] virtual PortCounts counts() const noexcept { return {}; }
  /// With the port that was chosen for port 0. An unspecified ip means all of this host's.
  [[nodiscard]] virtual PacketAddress local() const = 0;
};

}  // namespace tributary::transport::packet
