#pragma once
// Payloads that go to several destinations, as a result goes to all children: each is copied into a packet buffer and
// summed once, and every packet refers to that buffer behind a small one of headers. Known by where they lie, from one
// flush() to the next, as port.h lends them for so long.
//
// A payload that goes to one destination alone is better copied behind its headers: one buffer instead of two. So a
// first packet is made in two only while most payloads lately went to several.
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
  /// `sums`: the device does not. `offered`: it takes packets in pieces, some of which others have, too.
  SharedPayloads(rte_mempool* pool, bool sums, bool offered) : pool_(pool), sums_(sums), offered_(offered) {}
  ~SharedPayloads();
  SharedPayloads(const SharedPayloads&) = delete;
  SharedPayloads& operator=(const SharedPayloads&) = delete;

  struct Found {
    rte_mbuf* mbuf = nullptr;  // holds the payload alone, and is referred to once more; nullptr: copy it
    ethernet::PartialSum sum = 0;
  };
  /// `place`: payload_place() of it.
  [[nodiscard]] Found find(std::span<const std::byte> payload, std::size_t place) noexcept;
  /// Payloads may have changed from here on.
  void forget() noexcept;

 private:
  struct Known {
    const std::byte* data = nullptr;
    std::size_t bytes = 0;
    rte_mbuf* mbuf = nullptr;
    std::uint16_t unused = 0;  // references that it has, for packets to come
    ethernet::PartialSum sum = 0;
  };
  static constexpr std::size_t kBytesMin = 256;  // less is copied faster
  [[nodiscard]] bool make(Known& known) noexcept;
  [[nodiscard]] rte_mbuf* blank() noexcept;
  static void let_go(const Known& known) noexcept;

  rte_mempool* const pool_;
  const bool sums_;
  const bool offered_;
  rte_mbuf* next_ = nullptr;  // for the next payload: to be written it must come from whoever has read it last
  bool wanted_ = false;       // lately most payloads went to several
  std::uint32_t first_ = 0;   // since the last forget(): payloads that were new,
  std::uint32_t again_ = 0;   // and those that were not
  std::array<std::uint8_t, kSharedPayloads> used_{};
  std::size_t used_count_ = 0;
  std::array<Known, kSharedPayloads> known_{};
};

}  // namespace tributary::transport::dpdk
