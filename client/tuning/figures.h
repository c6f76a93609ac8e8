#pragma once
// Input of the cost model: how fast messages, hops, links and processors are here.
#include <cstdint>

namespace tributary::tuning {

/// The defaults were measured over loopback TCP on a virtual machine with 2 cores (Intel Xeon). The link's rate is not
/// measured: it is the slowest rate for which one would build trees, and the ranks alone cannot know it.
struct Figures {
  double message_us = 12.5;    // from one rank to another; all of it is work, half at each rank
  double hop_us = 18;          // between a rank and an aggregator, in either direction
  double aggregator_us = 4.5;  // the aggregator's part of hop_us
  double link_gbits = 1;       // rate of each rank's link, in Gbit/s, per direction; 0: no link, the ranks share a host
  // The rate of a rank's link in a ring of all ranks: less than link_gbits where uplinks narrow it, more where
  // neighbours share a host; 0: as link_gbits.
  double ring_gbits = 0;
  double trees_gbits = 0;    // rate of a vector through all lanes, without the ranks' links; 0: at least their rate
  std::uint32_t lanes = 1;   // lanes, which share trees_gbits
  double lightest_lane = 0;  // part of the bytes that the lane with the least carries; 0: lanes are equal
  std::uint32_t levels = 0;  // levels of the trees; 0: as many as the model assumes for this many ranks
  double core_gbytes = 2.5;  // rate at which one core sends, receives or reduces, in GB/s
  std::uint32_t cores = 2;   // cores of each host
  std::uint32_t ranks_per_host = 1;        // at most
  std::uint32_t segment_bytes = 16 << 10;  // the unit in which a tree moves data
  friend bool operator==(const Figures&, const Figures&) = default;
};

/// The number of cores that this process may use; at least 1.
[[nodiscard]] std::uint32_t cores_here() noexcept;

}  // namespace tributary::tuning
