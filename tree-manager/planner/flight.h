#pragma once
// The bytes that a child may have in flight, where nobody sets them. Aggregators reserve memory for them; the child uses
// as much of that as the round trip asks for that it measures (client/collectives/in_network/lane_window.h). It begins
// with a half, which fills a link for the round trip that is taken for granted here, and is no more than the queues on
// its way hold. More would be lost there, and TCP would slow down.
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
/// Takes 160 us for a tree's round trip, with the time that segments wait in it for one another: at 100 Gbit/s that is
/// 2 MiB, and twice that is reserved. The least to begin with is 128 KiB: on links of 1 Gbit/s with queues of 256 KiB it brought a tensor of 1 MiB over four
/// ranks at 98 % of the rate, over eight at 94 %; 256 KiB at 98 and 82 %, 2 MiB at 75 %
/// (bench/results/archive/peers-*.md). Segments shrink with the rate, so that a tree's levels work at the same time
/// even on small tensors. Where no rate is known, children begin with little and find out; links whose drivers name no
/// rate are mostly those of virtual machines, so segments are small, and the reservation is 2 MiB.
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

/// Returns the window of a tree that carries `part` of `whole` of the bytes, where one tree alone would have `window`:
/// more trees do not make a child's link hold much more in its queue. Together they get twice the window of one, because
/// an aggregator that is late holds up its own lane alone; each has two segments at least, because a link stands still
/// while the sum of its only segment is under way. (Eight ranks and eight aggregators with links of 1 Gbit/s: 4 MiB
/// took 264 ms with the window of one tree on each lane, and 58 ms with this window; bench/results/archive/equal-*.md.
/// All of these figures are for windows in use, a half of the reservation.)
[[nodiscard]] constexpr std::uint32_t window_of_lane(std::uint32_t window, std::uint32_t part,
                                                     std::uint32_t whole) noexcept {
  if (part >= whole) return window;
  return std::min(window, std::max((2 * window * part + whole - 1) / whole, 2U));
}

/// Returns the same for trees that carry less than the ranks' links, because many children share an aggregator's link:
/// that link's queue holds the segments of all children, and together they get four times the window of one child. A
/// smaller window does not fill the link, because the ranks' own traffic makes a segment's round trip longer. (One
/// aggregator with a link of 1 Gbit/s, 16 MiB: four ranks took 186 ms with 8 segments each and 238 ms with 4; eight
/// ranks 1 MiB 15.6 ms with 4 and 22.9 ms with 8.)
[[nodiscard]] constexpr std::uint32_t window_at(std::uint32_t window, std::uint32_t part, std::uint32_t whole,
                                                const PathRates& rates) noexcept {
  const std::uint32_t most = window_of_lane(window, part, whole);
  if (rates.trees == 0 || rates.trees >= rates.links) return most;
  const double carried = static_cast<double>(rates.trees) / static_cast<double>(rates.links);
  const auto narrowed = static_cast<std::uint32_t>(4 * carried * window * part / whole + 0.999);
  return std::min(most, std::max(narrowed, 2U));
}

}  // namespace tributary::manager
