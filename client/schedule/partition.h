#pragma once
// The division of a vector among ranks, and the numbering of ranks from a root.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "client/schedule/schedule.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/collective.h"

namespace tributary::schedule {

/// Divides `total` elements into `parts` contiguous parts, as evenly as possible: the first total % parts parts have
/// one element more. If total is a multiple of parts, as in all_gather, every part has total / parts elements.
struct Partition {
  std::uint64_t total;
  std::uint64_t parts;

  [[nodiscard]] std::uint64_t offset(std::uint64_t part) const noexcept {
    TRIBUTARY_ASSERT(parts != 0, "part {} of {} elements in {} parts", part, total, parts);
    return part * (total / parts) + std::min(part, total % parts);
  }
  /// Returns the slice of the parts [begin, end).
  [[nodiscard]] Slice range(Buffer buffer, std::uint64_t begin, std::uint64_t end) const noexcept {
    return {buffer, offset(begin), offset(end) - offset(begin)};
  }
  [[nodiscard]] Slice part(Buffer buffer, std::uint64_t index) const noexcept {
    return range(buffer, index, index + 1);
  }
  [[nodiscard]] std::uint64_t largest() const noexcept { return offset(1); }
};

/// Returns the division of the whole vector among the ranks.
[[nodiscard]] inline Partition partition_of(const Parameters& p) noexcept {
  return {amount_in_all(p.collective, p.count, p.ranks), p.ranks};
}

/// Returns the number of steps after which doubling has reached all `ranks` ranks.
[[nodiscard]] constexpr std::uint32_t ceil_log2(std::uint32_t ranks) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(ranks - 1));
}

/// Returns the rank that is `distance` places further around the ring; distance is at most `ranks`.
[[nodiscard]] constexpr std::uint32_t ahead(const Parameters& p, std::uint64_t distance) noexcept {
  return static_cast<std::uint32_t>((p.rank + distance) % p.ranks);
}
[[nodiscard]] constexpr std::uint32_t behind(const Parameters& p, std::uint64_t distance) noexcept {
  return static_cast<std::uint32_t>((p.rank + p.ranks - distance) % p.ranks);
}

/// Returns this rank's place, counted from the root, which has place 0. Trees are built on places.
[[nodiscard]] constexpr std::uint32_t place_of(const Parameters& p) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{p.rank} + p.ranks - p.root) % p.ranks);
}
[[nodiscard]] constexpr std::uint32_t rank_at(const Parameters& p, std::uint64_t place) noexcept {
  return static_cast<std::uint32_t>((place + p.root) % p.ranks);
}
/// Returns the number of places in the subtree of `place` in the binomial tree, including `place`: they are the places
/// [place, place + subtree(p, place)).
[[nodiscard]] constexpr std::uint32_t subtree(const Parameters& p, std::uint32_t place) noexcept {
  return place == 0 ? p.ranks : std::min(place & (0U - place), p.ranks - place);
}

}  // namespace tributary::schedule
