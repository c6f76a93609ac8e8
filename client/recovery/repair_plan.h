#pragma once
// The moves after a tree is lost, as a pure function of all ranks' holdings. Rank 0 makes the plan and sends each rank
// its own part, so that no other rank has to know the holdings of all ranks. The size of a part grows with the
// logarithm of the number of ranks.
//
// Results for all ranks. For each lane the ranks stand in a line: ranks with more results come first, and ranks with
// equally many in the order of their numbers. The k-th rank of the line (k > 0) gets its missing results from the rank
// at place k without k's highest bit: this makes a binomial tree. The sender stands earlier in the line, so it has at
// least as many results; it first gets its own missing results, and then passes them on. The first rank of the line
// lacks no result. One tree serves all sequences of a lane, no rank sends to more than log2(N) ranks, and no result
// passes through more than log2(N) ranks.
//
// Results for one rank. If a rank lacks such a result, although other ranks know that the segment has ended, it says in
// its holdings that it wants the result. All ranks then make the result again, by FanIn.
//
// Order. Each rank walks through the lanes, and in each lane through the sequences, in ascending order. Its messages to
// one peer, and from one peer, are in this order, too. So both ends of each channel agree on the order. An item waits
// only for earlier items on its channels, and for its own data from the rank above, so no circle of waits can form.
#include <cstdint>
#include <optional>
#include <vector>

#include "client/control/control_message.h"

namespace tributary::client {

/// The tree by which one rank, the root, gets inputs from all other ranks. Each rank has at most `width` children.
class FanIn {
 public:
  FanIn(std::uint32_t ranks, std::uint32_t root, std::uint32_t width) noexcept
      : ranks_(ranks), root_(root), width_(width) {}
  /// Returns the rank to which `rank` sends; nullopt for the root.
  [[nodiscard]] std::optional<std::uint32_t> parent(std::uint32_t rank) const noexcept;
  /// Returns the ranks that send to `rank`, in ascending order.
  [[nodiscard]] std::vector<std::uint32_t> children(std::uint32_t rank) const;
  /// Returns the number of ranks whose inputs pass through `rank`, including itself.
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
  /// Makes the plan. Errc::corrupt: ranks report different numbers of lanes, or two ranks want one result.
  [[nodiscard]] static Result<RepairPlan> make(const std::vector<Holdings>& by_rank);
  [[nodiscard]] Moves for_rank(std::uint32_t rank) const;

 private:
  struct LaneRepair {
    std::uint64_t lo = 0, hi = 0;
    std::vector<std::uint64_t> prefix;  // by rank: number of results
    std::vector<std::uint32_t> line;    // the ranks in the order of the line
    std::vector<std::uint32_t> place;   // by rank: place in the line
    std::vector<std::uint64_t> wanted;
  };
  std::vector<LaneRepair> lanes_;
};

}  // namespace tributary::client
