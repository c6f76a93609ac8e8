#pragma once
// The moves after a tree is lost, as a pure function of all ranks' holdings. Rank 0 makes the plan and tells each rank
// its own part, so that nobody but rank 0 has to know what all ranks hold: a part grows with the logarithm of the
// number of ranks.
//
// Results for all. For each lane the ranks stand in a line, those that hold most first, equal ones by number. The k-th
// of the line (k > 0) gets what it lacks from the rank whose place is k without its highest bit: a binomial tree. That
// rank stands before it, so it holds as much or more; what it lacks itself it gets first, and passes on. The first of
// the line lacks nothing. One tree serves all sequences of a lane, no rank sends to more than log2(N) others, and
// nothing passes through more than log2(N) ranks.
//
// A result for one rank that lacks it although others have heard of it is wanted: that rank says so with its holdings,
// and all ranks make the result again, by FanIn.
//
// Order. Each rank walks through lanes, and in each lane through sequences, in ascending order, and what it sends to
// one peer and takes from one peer is in that order. So both ends of each channel agree; and as an item waits only for
// earlier ones on its channels and for itself further up its tree, nothing waits in a circle.
#include <cstdint>
#include <optional>
#include <vector>

#include "client/control/control_message.h"

namespace tributary::client {

/// The tree by which a rank gets something from each of the others: `width` children a rank, the taker at the root.
class FanIn {
 public:
  FanIn(std::uint32_t ranks, std::uint32_t root, std::uint32_t width) noexcept
      : ranks_(ranks), root_(root), width_(width) {}
  /// Whom `rank` hands on to, unless it is the root.
  [[nodiscard]] std::optional<std::uint32_t> parent(std::uint32_t rank) const noexcept;
  /// Ascending.
  [[nodiscard]] std::vector<std::uint32_t> children(std::uint32_t rank) const;
  /// How many ranks hand on by way of `rank`, itself included.
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
  /// Errc::corrupt if ranks report different numbers of lanes, or want what nobody has heard of.
  [[nodiscard]] static Result<RepairPlan> make(const std::vector<Holdings>& by_rank);
  [[nodiscard]] Moves for_rank(std::uint32_t rank) const;

 private:
  struct Lane {
    std::uint64_t lo = 0, hi = 0;
    std::vector<std::uint64_t> prefix;  // by rank
    std::vector<std::uint32_t> line;    // ranks
    std::vector<std::uint32_t> place;   // by rank: in the line
    std::vector<std::uint64_t> wanted;
  };
  std::vector<Lane> lanes_;
};

}  // namespace tributary::client
