#pragma once
// The number of packet buffers (mbufs) that a queue needs so that no port ever waits for one: the sum of all places
// where buffers can be at the same time.
#include <cstddef>
#include <cstdint>

namespace tributary::transport::dpdk {

inline constexpr std::uint32_t kReceiveBurst = 64;     // packets taken from the device or from other queues in one call
inline constexpr std::uint32_t kTransmitBurst = 64;    // packets collected before they are handed to the device
inline constexpr std::uint32_t kHandOver = 512;        // packets in the ring from other ports; a power of two
inline constexpr std::uint32_t kWaiting = 64;          // packets that wait for the answer of a neighbour
inline constexpr std::uint32_t kSharedPayloads = 256;  // payloads that several packets share, known until flush()
inline constexpr std::uint32_t kKept = 512;            // payloads of each port that are kept where they lie
inline constexpr std::uint32_t kBlank = 32;            // buffers taken from the pool together, for the next packets
inline constexpr std::uint32_t kAnswers = 1;           // buffer for the answer to a control frame, while it is written
inline constexpr std::uint32_t kCache = 256;           // buffers of a pool that DPDK caches for each thread

struct Descriptors {
  std::uint16_t receive = 0;
  std::uint16_t transmit = 0;
};

/// The number of buffers in one queue's pool, on a device with `queues` queues, each shared by `sharers` ports. For
/// net_ring the sum counts the device's own rings, too: the packets in the rings use the sender's transmit
/// descriptors.
[[nodiscard]] constexpr std::uint32_t mbufs_needed(Descriptors descriptors, std::uint32_t queues,
                                                   std::uint32_t sharers = 1) noexcept {
  const std::uint32_t ports = queues * sharers;
  const std::uint32_t others = ports - 1;
  std::uint32_t sum = descriptors.receive;      // the device may fill them
  sum += 2 * descriptors.transmit;              // not sent yet, or not reported yet; two buffers for each packet
  sum += sharers * kReceiveBurst;               // shown to the protocol until the next receive()
  sum += sharers * 2 * kTransmitBurst;          // taken by send(), not yet handed over; two buffers for each packet
  sum += sharers * (kSharedPayloads + 1);       // shared payloads, and the buffer for the next one
  sum += sharers * kBlank;                      // blank buffers for the next packets
  sum += ports * kKept;                         // packets that came here for other ports may stay with them
  sum += sharers * kWaiting;                    // packets that wait for a neighbour's answer
  sum += sharers * kAnswers;                    //
  sum += others * (kHandOver + kReceiveBurst);  // packets that came here for other ports
  sum += ports * (kCache + kCache / 2);         // DPDK flushes a thread's cache at one and a half times its size
  return sum;
}
static_assert(mbufs_needed({1024, 1024}, 1) == 1024 + 2048 + 64 + 128 + 257 + 32 + 512 + 64 + 1 + 384);

/// The greatest MTU for which DPDK's 16 bits can express the room of a buffer.
inline constexpr std::uint32_t kMtuMax = 65326;

/// The bytes in one buffer for a frame of the link: the headroom that drivers want, Ethernet's header with a tag, and
/// the packet. The sum is rounded up to whole cache lines, and to DPDK's usual size, which some drivers expect.
[[nodiscard]] constexpr std::uint32_t data_room(std::uint32_t mtu) noexcept {
  constexpr std::uint32_t kHeadroom = 128;
  constexpr std::uint32_t kUsual = 2048;
  constexpr std::uint32_t kLine = 64;
  const std::uint32_t frame = mtu + 14 + 4;
  const std::uint32_t whole = (frame + kLine - 1) / kLine * kLine;
  return kHeadroom + (whole < kUsual ? kUsual : whole);
}

static_assert(data_room(kMtuMax) <= UINT16_MAX && data_room(kMtuMax + 1) > UINT16_MAX);

/// The bytes of DPDK's memory that a device takes: the pools (beside its data, each mbuf takes 128 bytes and 64 bytes
/// of the pool), the rings of descriptors, and the drivers' own memory.
[[nodiscard]] constexpr std::size_t memory_needed(Descriptors descriptors, std::uint32_t queues, std::uint32_t mtu,
                                                  std::uint32_t sharers = 1) noexcept {
  constexpr std::size_t kPerMbuf = 128 + 64 + 64;
  constexpr std::size_t kDriver = 8U << 20U;
  const std::size_t pool = std::size_t{mbufs_needed(descriptors, queues, sharers)} * (data_room(mtu) + kPerMbuf);
  return queues * pool + kDriver;
}

}  // namespace tributary::transport::dpdk
