#pragma once
// All children of one lane in one thread, with the least code for the packet protocol: the network loses no packets, so
// the children send none again. The thread needs less time for a packet than an aggregator, so it never slows the
// aggregator down: payloads never change, lie in their packets already, and have checksums from before the run.
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/dpdk/device.h"
#include "transport/dpdk/packet_pool.h"
#include "transport/ethernet/udp_template.h"
#include "transport/packet/crc32c.h"
#include "transport/packet/wire.h"
#include "tributary/protocol/frame.h"

struct rte_mbuf;

namespace tributary::bench {

struct ChildrenSetting {
  std::uint32_t window = 0, segment_bytes = 0;
  transport::ethernet::UdpFlow flow;  // no to_mac: the children ask for it by ARP
  std::uint16_t queue = 0;            // queue from which the children receive
  std::uint16_t send_queue = 0;       // queue by which the children send
  bool in_rows = false;               // true: sends a window of one child, then of the next; false: one packet of each
                                      // in turn
  std::uint32_t lane_children = 0;    // children of each lane; 0: all children are of one lane
};

class Children {
 public:
  using Clock = std::chrono::steady_clock;
  Children(transport::dpdk::Device& device, std::size_t count, const ChildrenSetting& setting);

  /// Connects all children. During this it calls `meanwhile` again and again, for an aggregator in the same thread.
  /// False: no answer came.
  template <class Meanwhile>
  bool connect(Meanwhile meanwhile) {
    for (const auto end = Clock::now() + std::chrono::seconds(5); Clock::now() < end;) {
      ask();
      for (const auto soon = Clock::now() + std::chrono::milliseconds(1); Clock::now() < soon;) {
        meanwhile();
        take_all();
      }
      if (all_connected()) return true;
    }
    return false;
  }
  /// Contributes as far as the windows allow, and receives the results that have come.
  void turn();
  /// Announces the children's addresses: the peer needs them for its answers, and forgets them after some time.
  void tell_where_we_are();
  /// Calls turn() for this long; returns the number of results that came.
  std::uint64_t exchange(Clock::duration time);
  [[nodiscard]] std::uint64_t results() const noexcept { return results_; }
  [[nodiscard]] bool wrong() const noexcept { return wrong_; }

 private:
  struct Child {
    std::uint64_t ours = 0, theirs = 0;  // each side's name of the connection
    std::uint64_t cookie = 0;
    std::uint64_t number = 0, largest = 0, came = 0;  // packet numbers
    std::uint64_t received = 0;                       // received bytes of the aggregator's stream
    std::uint64_t sequence = 0, results = 0;
  };
  static constexpr std::uint16_t kBurst = 32;

  void ask();
  [[nodiscard]] bool all_connected() const noexcept;
  [[nodiscard]] rte_mbuf* blank();
  void write_payloads();
  void stage(rte_mbuf* mbuf, std::size_t bytes);
  void flush();
  void open(Child& child);
  void contribute();
  void write(Child& child, rte_mbuf* mbuf);
  [[nodiscard]] bool knows_mac() const noexcept;
  void learn_mac(const rte_mbuf* mbuf);
  void take_all();
  void take(const rte_mbuf* mbuf);
  void check(const rte_mbuf* mbuf);

  transport::dpdk::Device& device_;
  ChildrenSetting setting_;
  transport::ethernet::UdpTemplate headers_;
  std::vector<std::byte> payload_;
  transport::ethernet::PartialSum payload_sum_ = 0;
  transport::packet::Crc32cSuffix suffix_;
  FrameHeader frame_;
  std::vector<Child> all_;
  std::unique_ptr<transport::dpdk::PacketPool> contributions_;  // buffers that already hold the payloads
  std::size_t next_ = 0;
  std::array<rte_mbuf*, kBurst + 8> staged_{};
  std::uint16_t staged_count_ = 0;
  std::uint64_t results_ = 0;
  bool wrong_ = false;
};

}  // namespace tributary::bench
