#pragma once
// The moves after a tree is lost, as a pure function of all ranks' holdings. Rank 0 makes the plan and tells each rank
// its own part, so that no other rank has to know the holdings of all: a part grows with the logarithm of the number of
// ranks.
//
// Results for all. For each lane the ranks stand in a line: those that hold most come first, equal ones by number. The
// k-th of the line (k > 0) gets its missing results from the rank whose place is k without its highest bit: a binomial
// tree. That rank stands before it, so it holds as much or more; it gets its own missing results first, and passes them
// on. The first rank of the line lacks nothing. One tree serves all sequences of a lane, no rank sends to more than
// log2(N) others, and nothing passes through more than log2(N) ranks.
//
// Results for one rank. If that rank lacks the result although others have heard of it, it says in its holdings that it
// wants it, and all ranks make the result again, by FanIn.
//
// Order. Each rank walks through lanes, and in each lane through sequences, in ascending order, and its messages to one
// peer and from one peer are in that order. So both ends of each channel agree. An item waits only for earlier ones on
// its channels and for itself further up its tree, so there is no circle of waits.
#include <cstdint>
#include <optional>
#include <vector>

#include "client/control/control_message.h"

namespace tributary::client {

/// The tree by which one rank gets inputs from all other ranks: it is the root, and each rank has up to `width`
/// children.
class FanIn {
 public:
  FanIn(std::uint32_t ranks, std::uint32_t root, std::uint32_t width) noexcept
      : ranks_(ranks), root_(root), width_(width) {}
  /// Returns the rank to which `rank` hands on; none for the root.
  [[nodiscard]] std::optional<std::uint32_t> parent(std::uint32_t rank) const noexcept;
  /// Ascending.
  [[nodiscard]] std::vector<std::uint32_t> children(std::uint32_t rank) const;
  /// Returns how many ranks hand on through `rank`, itself included.
  [[nodiscard]] std::uint32_t subtree(std::uint32_t rank) const noexcept;

 private:
  [[nodiscard]] std::uint64_t place(std::uint32_t rank) const noexcept { return (rank + ranks_ - root_) % ranks_; }
  [[nodiscard]] std::uint32_t at(std::uint64_t place) const noexcept {
    return static_cast<std::uint32_t>((place + root_) % ranks_);
  }
  const std::uint64_t ranks_, root_, width_;
};

class RepairPlan {
 public:
  /// Errc::corrupt if ranks report different numbers of lanes, or want a result that no rank has heard of.
  [[nodiscard]] static Result<RepairPlan> make(const std::vector<Holdings>& by_rank);
  [[nodiscard]] Moves for_rank(std::uint32_t rank) const;

 private:
  struct LaneRepair {
    std::uint64_t lo = 0, hi = 0;
    std::vector<std::uint64_t> prefix;  // by rank
    std::vector<std::uint32_t> line;    // ranks
    std::vector<std::uint32_t> place;   // by rank: its place in the line
    std::vector<std::uint64_t> wanted;
  };
  std::vector<LaneRepair> lanes_;
};

}  // namespace tributary::client
