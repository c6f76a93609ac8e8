#pragma once
// The bytes that a child may have in flight, if no setting gives them. Aggregators reserve memory for these bytes. The
// child uses as many of them as its measured round trip needs (client/collectives/in_network/lane_window.h). It begins
// with a half. This half fills a link for the round trip that is assumed here, and fits into the queues on its way:
// more bytes would be lost there, and TCP would slow down.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "tree-manager/planner/tree.h"

namespace tributary::manager {

struct Flight {
  std::uint32_t window = 0;  // segments
  std::uint32_t segment_bytes = 0;
};

/// Chooses for links of this rate in bits per second; 0: unknown.
///
/// It assumes a round trip of 160 us over a tree, with the time that segments wait there for other segments. At 100
/// Gbit/s this is 2 MiB, and twice as much is reserved. A child begins with at least 128 KiB. On links of 1 Gbit/s with
/// queues of 256 KiB, a tensor of 1 MiB then ran at 98 % of the rate over four ranks and at 94 % over eight; with 256
/// KiB at 98 and 82 %, with 2 MiB at 75 % (bench/results/archive/peers-*.md). Segments shrink with the rate, so that a
/// tree's levels work at the same time even on small tensors. If no rate is known, children begin with few bytes and
/// measure. Links without a known rate mostly belong to virtual machines, so segments are small, and the reservation is
/// 2 MiB.
[[nodiscard]] constexpr Flight flight_for(std::uint64_t rate_bits_per_second) noexcept {
  constexpr Flight kUnknown{.window = 128, .segment_bytes = 16U << 10};
  constexpr std::uint64_t kRoundTripsPerSecond = 6250;
  constexpr std::uint64_t kBytesMin = 128U << 10;
  constexpr std::uint64_t kBytesMax = 4U << 20;
  constexpr std::uint64_t kSlow = 6'500'000'000;
  constexpr std::uint64_t kMedium = 25'000'000'000;
  const std::uint64_t rate = rate_bits_per_second;
  if (rate == 0) return kUnknown;
  const std::uint64_t bytes = std::clamp(rate / 8 / kRoundTripsPerSecond, kBytesMin, kBytesMax);
  const std::uint32_t segment = rate <= kSlow ? 16U << 10 : rate <= kMedium ? 32U << 10 : 64U << 10;
  return {static_cast<std::uint32_t>(2 * std::bit_ceil(bytes) / segment), segment};
}

/// Returns the window of a tree that carries `part` of `whole` of the bytes, if a single tree would have `window`: the
/// queue of a child's link does not hold much more for several trees. Together the trees get twice the window of one
/// tree, because a late aggregator delays only its own lane. Each tree has at least two segments, because a link is
/// idle while the sum of its only segment is under way. (Eight ranks and eight aggregators with links of 1 Gbit/s: 4
/// MiB took 264 ms with the window of one tree on each lane, and 58 ms with this window;
/// bench/results/archive/equal-*.md. All these figures are for windows in use, which are half of the reservation.)
[[nodiscard]] constexpr std::uint32_t window_of_lane(std::uint32_t window, std::uint32_t part,
                                                     std::uint32_t whole) noexcept {
  if (part >= whole) return window;
  return std::min(window, std::max((2 * window * part + whole - 1) / whole, 2U));
}

/// Returns the same for trees that carry less than the ranks' links because many children share an aggregator's link.
/// This link's queue holds the segments of all children, so together they get four times the window of one child. A
/// smaller window does not fill the link, because the ranks' own traffic makes a segment's round trip longer. (Measured
/// with one aggregator on a link of 1 Gbit/s. 16 MiB on four ranks took 186 ms with 8 segments each, and 238 ms with 4.
/// 1 MiB on eight ranks took 15.6 ms with 4 segments, and 22.9 ms with 8.)
[[nodiscard]] constexpr std::uint32_t window_at(std::uint32_t window, std::uint32_t part, std::uint32_t whole,
                                                const PathRates& rates) noexcept {
  const std::uint32_t most = window_of_lane(window, part, whole);
  if (rates.trees == 0 || rates.trees >= rates.links) return most;
  const double carried = static_cast<double>(rates.trees) / static_cast<double>(rates.links);
  const auto narrowed = static_cast<std::uint32_t>(4 * carried * window * part / whole + 0.999);
  return std::min(most, std::max(narrowed, 2U));
}

}  // namespace tributary::manager
