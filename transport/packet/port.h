#pragma once
// The port under the packet protocol: it sends and receives UDP datagrams in bursts. Kernel sockets (transport/udp), a
// DPDK device (transport/dpdk) and the tests' simulated network are ports; the protocol does not know which of them it
// uses.
//
// Threads: a port belongs to one thread. Other threads may call only wake().
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
/// order, `port` in the processor's byte order.
struct PacketAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;
  friend auto operator<=>(const PacketAddress&, const PacketAddress&) = default;
  /// Compares words: for a comparison of arrays, the compiler would call memcmp().
  friend bool operator==(const PacketAddress& a, const PacketAddress& b) noexcept {
    const auto [a_low, a_high] = std::bit_cast<std::array<std::uint64_t, 2>>(a.ip);
    const auto [b_low, b_high] = std::bit_cast<std::array<std::uint64_t, 2>>(b.ip);
    return ((a_low ^ b_low) | (a_high ^ b_high)) == 0 && a.port == b.port;
  }
};

/// One datagram that has come. `bytes` is UDP's payload, which the reader may change (decryption in place).
struct ReceivedPacket {
  PacketAddress from;
  std::span<std::byte> bytes;
  bool congestion_experienced = false;  // the ECN mark of RFC 3168
  bool refused = false;                 // the network says that no process listens at `from` (ICMP port unreachable);
                                        // `bytes` quotes the beginning of the packet that this side sent
  // If this is not 0, `refused` is set and has another meaning: the packet was too long (ICMP fragmentation needed,
  // ICMPv6 packet too big), and the path carries this many bytes, IP's header included.
  std::uint32_t path_bytes = 0;
  // The time when the device or the system received the datagram, if known. So the time in which the datagram waited
  // for this thread does not count as time in the network.
  TimePoint arrived{};
  void* buffer = nullptr;  // argument for keep(); nullptr: the bytes cannot be kept
  // Set only after leave_checksums(): the reader of the bytes must verify UDP's checksum, in the same pass. The value
  // is the sum of the bytes that the checksum covers besides `bytes` (RFC 1071, not folded).
  std::optional<std::uint64_t> udp_besides;
};

/// The most bytes of a send()'s header.
inline constexpr std::size_t kPortHeaderBytesMax = 1024;

/// The bytes of a packet's own header.
inline constexpr std::size_t kPacketHeaderBytes = 64;

/// A datagram that is a whole frame. Its frame header and payload may go to several receivers, so it carries values
/// that were computed once for all of them.
struct FrameDatagram {
  std::span<const std::byte, kPacketHeaderBytes> packet_header;  // send_frame() copies this and the frame header
  std::span<const std::byte, kFrameHeaderBytes> frame_header;
  std::span<const std::byte> payload;  // borrowed until flush(), as in send()
  std::uint64_t frame_header_sum = 0;  // partial sum of the frame's header, as in udp_besides
  std::size_t payload_place = 0;       // payload_place(payload.data())
};

/// The port's own counts of datagrams. A port may have no such counts: a device's counters are elsewhere.
struct PortCounts {
  // Counts of datagrams that send() took, but that were never sent:
  std::uint64_t unsent_full = 0;      // the system took no more datagrams at that time
  std::uint64_t unsent_too_long = 0;  // too long for the first link of the path
  std::uint64_t unsent_no_way = 0;    // no route to the address, or no address of its family
  std::uint64_t unsent_other = 0;
  // Counts of messages with several datagrams each, which the system or the device cuts apart or has joined:
  std::uint64_t joined_sent = 0, joined_received = 0;
  std::uint64_t joined_refused = 0;  // datagrams that should have been joined, but were sent one by one
};

class PacketPort {
 public:
  virtual ~PacketPort() = default;
  /// Fills `into` from its beginning with the datagrams that have come, without waiting, and returns their number. They
  /// stay valid until the next receive().
  [[nodiscard]] virtual std::size_t receive(std::span<ReceivedPacket> into) = 0;
  /// From now on leaves to the caller the check of UDP's checksum, for packets that have `udp_besides`.
  virtual void leave_checksums() noexcept {}
  /// Keeps the bytes of a packet of the last receive() where they are. Each call needs one give_back(). Call it only if
  /// the port's buffers can stay with the reader. Returns false if the port can spare no more buffers: the caller then
  /// copies the bytes.
  [[nodiscard]] virtual bool keep(void* /*buffer*/) noexcept { return false; }
  virtual void give_back(void* /*buffer*/) noexcept {}
  /// Takes one datagram, `header` (at most kPortHeaderBytesMax) then `payload`. The header is copied now. The port may
  /// read the payload until flush() has returned; until then the caller keeps the payload unchanged in its place.
  /// Returns false if the port is full: the caller must flush(), and try again in a later turn. The datagram is marked
  /// ECT(0), unless the port's settings forbid it.
  [[nodiscard]] virtual bool send(const PacketAddress& to, std::span<const std::byte> header,
                                  std::span<const std::byte> payload) = 0;
  /// Takes a datagram that is a whole frame, for ports that have a shorter way for such datagrams.
  [[nodiscard]] virtual bool send_frame(const PacketAddress& to, const FrameDatagram& frame);
  /// Gives this priority (Channel::set_priority()) to the datagrams of the send()s that follow, until the next call. 0:
  /// the datagrams have no priority. A port without classes of datagrams ignores the call.
  virtual void set_priority(std::uint32_t /*priority*/) noexcept {}
  /// Hands all taken datagrams to the network. Datagrams that the network does not take are dropped and counted: the
  /// protocol sends them again.
  virtual void flush() = 0;
  /// Waits until a datagram comes, wake() is called, or `limit` is over. A port that cannot sleep returns at once.
  virtual void wait(Duration limit) = 0;
  /// A descriptor that another port's wait() can watch, and that is readable when a datagram has come. -1: the port has
  /// none.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
  /// Makes wait() also end when one of these descriptors is readable; they belong to other ports of the same thread. A
  /// port without a descriptor sleeps only for short times, if at all, and may ignore them.
  virtual void watch(std::span<const int> /*descriptors*/) {}
  /// Ends a wait(), or the next one. Any thread may call it.
  virtual void wake() noexcept = 0;
  /// The longest datagram to `to` that needs no fragments, by the route or the device: bytes of UDP's payload, without
  /// headers.
  [[nodiscard]] virtual std::size_t datagram_bytes_max(const PacketAddress& to) = 0;
  /// Uses a refusal's path_bytes for the path to `to`. The caller has checked that the refusal quotes a packet that was
  /// sent.
  virtual void believe_path(const PacketAddress& /*to*/, std::uint32_t /*path_bytes*/) {}
  [[nodiscard]] virtual PortCounts counts() const noexcept { return {}; }
  /// The port's address, with the port that was chosen for port 0. An unspecified ip means all addresses of this host.
  [[nodiscard]] virtual PacketAddress local() const = 0;
};

}  // namespace tributary::transport::packet
