#pragma once
// Input of the cost model: the speeds of messages, hops, links and processors.
#include <cstdint>

namespace tributary::tuning {

/// The figures. The defaults were measured over loopback TCP on a virtual machine with 2 cores (Intel Xeon). Only the
/// link's rate was not measured, because ranks cannot know it: it is the slowest rate for which trees are useful.
struct Figures {
  double message_us = 12.5;    // time of a message between two ranks: all of this is work, half at each rank
  double hop_us = 18;          // time of a message between a rank and an aggregator, in either direction
  double aggregator_us = 4.5;  // the aggregator's part of hop_us
  double link_gbits = 1;       // rate of each rank's link, in Gbit/s, per direction; 0: no link, the ranks share a host
  // The rate of a rank's link in a ring of all ranks: less than link_gbits if uplinks limit it, more if neighbours
  // share a host; 0: equal to link_gbits.
  double ring_gbits = 0;
  // The same for other ways between the ranks, which cross uplinks more often than a ring: recursive doubling,
  // halving-doubling, and equal parts from each rank to all other ranks. 0: the lower of link_gbits and ring_gbits.
  double doubling_gbits = 0;
  double halving_gbits = 0;
  double spread_gbits = 0;
  double trees_gbits = 0;        // rate of a vector through all lanes, without the ranks' links; 0: at least their rate
  std::uint32_t lanes = 1;       // number of lanes, which share trees_gbits
  std::uint32_t lane_cycle = 1;  // places in a cycle of the dealing of segments to lanes
  double lightest_lane = 0;      // part of the bytes on the lane with the least bytes; 0: lanes are equal
  double heaviest_lane = 0;      // the same for the most bytes
  std::uint32_t levels = 0;      // levels of the trees; 0: as many as the model assumes for this many ranks
  double core_gbytes = 2.5;      // rate at which one core sends, receives or reduces, in GB/s
  std::uint32_t cores = 2;       // cores of each host
  std::uint32_t ranks_per_host = 1;        // the most ranks on one host
  std::uint32_t segment_bytes = 16 << 10;  // the unit in which a tree moves data
  // Rate of copies between a GPU's memory and the host's memory, in GB/s, in each direction; 0: the network reaches the
  // operations' memory itself.
  double staging_gbytes = 0;
  bool exact = false;    // sums are exact: no path rounds a partial sum (docs/numerics.md)
  bool leaders = false;  // the ranks lead hosts: all of their exact sums travel as forms
  friend bool operator==(const Figures&, const Figures&) = default;
};

/// Returns the number of cores that this process may use; at least 1.
[[nodiscard]] std::uint32_t cores_here() noexcept;

}  // namespace tributary::tuning
