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
  /// Compares words, because for an array the compiler would call memcmp().
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
  bool refused = false;                 // the network says that nobody listens at `from` (ICMP port unreachable);
                                        // `bytes` quotes the beginning of the packet that this side sent
  // If this is not 0, `refused` is set and means something else: the packet was too long (ICMP fragmentation needed,
  // ICMPv6 packet too big), and the path carries this many bytes, the header of IP included.
  std::uint32_t path_bytes = 0;
  // The time when the device or the system took the datagram in, if it tells. So the time in which the datagram waited
  // for this thread is not mistaken for time in the network.
  TimePoint arrived{};
  void* buffer = nullptr;  // what keep() takes; nullptr: the bytes cannot be kept
  // Set only after leave_checksums(): the reader of the bytes must verify UDP's checksum, in the same pass. The value
  // is the sum of all that the checksum covers besides the bytes (RFC 1071, not folded).
  std::optional<std::uint64_t> udp_besides;
};

/// The most bytes that a send()'s header may have.
inline constexpr std::size_t kPortHeaderBytesMax = 1024;

/// The bytes of a packet's own header.
inline constexpr std::size_t kPacketHeaderBytes = 64;

/// A datagram that is a whole frame. Its frame header and payload may go to others, too, so it brings along what was
/// computed about them once.
struct FrameDatagram {
  std::span<const std::byte, kPacketHeaderBytes> packet_header;  // send_frame() copies it, and so the frame header
  std::span<const std::byte, kFrameHeaderBytes> frame_header;
  std::span<const std::byte> payload;  // lent until flush(), as in send()
  std::uint64_t frame_header_sum = 0;  // a sum as in udp_besides
  std::size_t payload_place = 0;       // payload_place(payload.data())
};

/// The port's own counts of datagrams. A port may have none, such as a device, which has counters elsewhere.
struct PortCounts {
  // Counts of datagrams that send() took, but that were never sent:
  std::uint64_t unsent_full = 0;      // the system takes no more for now
  std::uint64_t unsent_too_long = 0;  // too long for the first link of the path
  std::uint64_t unsent_no_way = 0;    // no route there, or no address of that family
  std::uint64_t unsent_other = 0;
  // Counts of messages with several datagrams each, which the system or the device cuts or has joined:
  std::uint64_t joined_sent = 0, joined_received = 0;
  std::uint64_t joined_refused = 0;  // datagrams that should have been joined, but went one by one
};

class PacketPort {
 public:
  virtual ~PacketPort() = default;
  /// Fills `into` from its beginning with the datagrams that have come, without waiting; returns how many. They stay
  /// valid until the next receive().
  [[nodiscard]] virtual std::size_t receive(std::span<ReceivedPacket> into) = 0;
  /// Leaves UDP's checksum of packets that have `udp_besides` to the caller from now on.
  virtual void leave_checksums() noexcept {}
  /// Keeps the bytes of a packet of the last receive() where they are, until the caller has called give_back() as often
  /// as this. Only for ports whose buffers can stay with the reader. False: the port can spare no more buffers, so the
  /// caller copies the bytes.
  [[nodiscard]] virtual bool keep(void* /*buffer*/) noexcept { return false; }
  virtual void give_back(void* /*buffer*/) noexcept {}
  /// Takes one datagram, `header` (at most kPortHeaderBytesMax) then `payload`. The header is copied now. The payload
  /// may be read until flush() has returned; until then it does not change, and no other payload lies there. False: the
  /// port is full; flush() and try again in a later turn. The datagram is marked ECT(0), unless the port was told not
  /// to.
  [[nodiscard]] virtual bool send(const PacketAddress& to, std::span<const std::byte> header,
                                  std::span<const std::byte> payload) = 0;
  /// Takes a datagram that is a whole frame; for ports that have a shorter way for these.
  [[nodiscard]] virtual bool send_frame(const PacketAddress& to, const FrameDatagram& frame);
  /// Hands all datagrams that were taken to the network. Those that the network does not take are dropped and counted:
  /// the protocol sends them again.
  virtual void flush() = 0;
  /// Waits until a datagram comes, wake() is called, or `limit` is over. A port that cannot sleep returns at once.
  virtual void wait(Duration limit) = 0;
  /// A descriptor that another port's wait() can watch: it is readable when a datagram has come. -1: there is none.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
  /// Makes wait() also end when one of these is readable; they belong to other ports of the same thread. A port without
  /// a descriptor sleeps only for short times, if at all, and need not look at them.
  virtual void watch(std::span<const int> /*descriptors*/) {}
  /// Ends a wait(), or the next one. Any thread.
  virtual void wake() noexcept = 0;
  /// The longest datagram to `to` that needs no fragments, as the route or the device says: the bytes of UDP's payload,
  /// without headers.
  [[nodiscard]] virtual std::size_t datagram_bytes_max(const PacketAddress& to) = 0;
  /// Believes a refusal's path_bytes for the path to `to`. The caller has seen that the refusal quotes a packet that
  /// was sent.
  virtual void believe_path(const PacketAddress& /*to*/, std::uint32_t /*path_bytes*/) {}
  [[nodiscard]] virtual PortCounts counts() const noexcept { return {}; }
  /// The port's address, with the port that was chosen for port 0. An unspecified ip means all addresses of this host.
  [[nodiscard]] virtual PacketAddress local() const = 0;
};

}  // namespace tributary::transport::packet
