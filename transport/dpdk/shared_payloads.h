#pragma once
// Payloads that go to several destinations, as a result goes to all children. Each payload is copied into a packet
// buffer once, with its checksum, and every packet is a small buffer of headers that refers to it. From one flush() to
// the next, a payload is known by its address, because its owner lends it for this time (packet/port.h).
//
// A payload that goes to one destination is better copied behind its headers, into one buffer instead of two. So the
// first packet of a payload gets two buffers only while most recent payloads went to several destinations.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/dpdk/budget.h"
#include "transport/ethernet/checksum.h"

struct rte_mbuf;
struct rte_mempool;

namespace tributary::transport::dpdk {

class SharedPayloads {
 public:
  /// `sums`: true if the device computes no checksums. `offered`: true if the device takes packets in several buffers,
  /// which may be shared.
  SharedPayloads(rte_mempool* pool, bool sums, bool offered) : pool_(pool), sums_(sums), offered_(offered) {}
  ~SharedPayloads();
  SharedPayloads(const SharedPayloads&) = delete;
  SharedPayloads& operator=(const SharedPayloads&) = delete;

  struct Found {
    rte_mbuf* mbuf = nullptr;  // buffer with the payload, and a reference for the packet; nullptr: copy the payload
    ethernet::PartialSum sum = 0;
  };
  /// `place` is payload_place() of the payload.
  [[nodiscard]] Found find(std::span<const std::byte> payload, std::size_t place) noexcept;
  /// Forgets all payloads: from here on they may have changed.
  void forget() noexcept;

 private:
  struct Known {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    rte_mbuf* mbuf = nullptr;
    std::uint16_t unused = 0;  // references that were already counted for packets to come
    ethernet::PartialSum sum = 0;
  };
  static constexpr std::size_t kBytesMin = 256;  // a shorter payload is copied faster
  [[nodiscard]] bool make(Known& known) noexcept;
  [[nodiscard]] rte_mbuf* blank() noexcept;
  static void let_go(const Known& known) noexcept;

  rte_mempool* const pool_;
  const bool sums_;
  const bool offered_;
  rte_mbuf* next_ = nullptr;  // buffer for the next payload, already being prefetched for writing
  bool wanted_ = false;       // true while most recent payloads go to several destinations
  std::uint32_t first_ = 0;   // new payloads that were found since the last forget()
  std::uint32_t again_ = 0;   // known payloads that were found since the last forget()
  std::array<std::uint8_t, kSharedPayloads> used_{};
  std::size_t used_count_ = 0;
  std::array<Known, kSharedPayloads> known_{};
};

}  // namespace tributary::transport::dpdk
