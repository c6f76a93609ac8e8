#pragma once
// Turns the trees' share of an operation into whole segments. This is a pure function, so every rank cuts an operation
// at the same segment, and rank 0 knows which shares are in fact the same cut.
#include <algorithm>
#include <cstdint>

#include "client/tuning/cost_model.h"

namespace tributary::tuning {

/// Returns how many of an operation's segments the trees carry at `share`, which is out of kWholeShare: the nearest
/// whole number. If this changes the number little, it is rounded to a multiple of `cycle`, the length of a cycle of
/// the dealing (client/operation/dealing.h): each of the `lanes` lanes then has exactly its share, and no lane ends
/// later with an additional segment. In an operation of few segments the result may be 0 or all of them.
[[nodiscard]] constexpr std::uint64_t tree_segments(std::uint64_t segments, std::uint32_t share, std::uint32_t lanes,
                                                    std::uint32_t cycle) noexcept {
  // The product fits: a share is at most 2^16.
  const std::uint64_t nearest = (segments * share + kWholeShare / 2) / kWholeShare;
  const std::uint64_t whole = (nearest + cycle / 2) / cycle * cycle;
  const std::uint64_t change = std::max(whole, nearest) - std::min(whole, nearest);
  return std::min(segments, nearest >= cycle && change <= lanes / 2 ? whole : nearest);
}

/// Returns the same for an operation of this many bytes over the trees that `figures` describe.
[[nodiscard]] constexpr std::uint64_t tree_segments(const Figures& figures, std::uint64_t bytes,
                                                    std::uint32_t share) noexcept {
  const std::uint64_t segments = (bytes + figures.segment_bytes - 1) / figures.segment_bytes;
  return tree_segments(segments, share, figures.lanes, std::max(figures.lane_cycle, figures.lanes));
}

/// Returns whether the trees and the ranks both get segments of an operation of this many bytes.
[[nodiscard]] constexpr bool divides(const Figures& figures, std::uint64_t bytes, std::uint32_t share) noexcept {
  const std::uint64_t segments = (bytes + figures.segment_bytes - 1) / figures.segment_bytes;
  const std::uint64_t ours = tree_segments(figures, bytes, share);
  return ours > 0 && ours < segments;
}

}  // namespace tributary::tuning
