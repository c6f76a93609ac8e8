#include "client/recovery/repair_plan.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "tributary/protocol/assert.h"

namespace tributary::client {

std::optional<std::uint32_t> FanIn::parent(std::uint32_t rank) const noexcept {
  if (rank == root_) return std::nullopt;
  TRIBUTARY_ASSERT(rank < ranks_ && width_ > 0 && place(rank) > 0, "rank {} of {} in a tree to rank {}", rank, ranks_,
                   root_);
  return at((place(rank) - 1) / width_);
}

std::vector<std::uint32_t> FanIn::children(std::uint32_t rank) const {
  std::vector<std::uint32_t> ranks;
  TRIBUTARY_ASSERT(rank < ranks_ && root_ < ranks_ && width_ > 0, "rank {} of {} in a tree to rank {}", rank, ranks_,
                   root_);
  const std::uint64_t first = place(rank) * width_ + 1;
  for (std::uint64_t child = first; child < std::min(first + width_, ranks_); ++child) ranks.push_back(at(child));
  std::ranges::sort(ranks);
  return ranks;
}

std::uint32_t FanIn::subtree(std::uint32_t rank) const noexcept {
  std::uint64_t number = 0;
  // Add the places of the subtree level by level: on each level they are contiguous.
  for (std::uint64_t first = place(rank), last = first; first < ranks_;
       first = first * width_ + 1, last = (last + 1) * width_) {
    number += std::min(last, ranks_ - 1) - first + 1;
  }
  TRIBUTARY_ASSERT(number > 0 && number <= ranks_, "{} of {} ranks hand on through rank {}", number, ranks_, rank);
  return static_cast<std::uint32_t>(number);
}

Result<RepairPlan> RepairPlan::make(const std::vector<Holdings>& by_rank) {
  RepairPlan plan;
  plan.lanes_.resize(by_rank.at(0).size());
  for (std::size_t i = 0; i < plan.lanes_.size(); ++i) {
    LaneRepair& lane = plan.lanes_[i];
    for (const Holdings& holdings : by_rank) {
      if (holdings.size() != plan.lanes_.size())
        return fail(Errc::corrupt, "recovery: ranks report different numbers of lanes");
      lane.prefix.push_back(holdings[i].prefix);
    }
    const auto [least, greatest] = std::ranges::minmax(lane.prefix);
    lane.lo = least;
    lane.hi = greatest;
    TRIBUTARY_ASSERT(lane.prefix.size() == by_rank.size(), "{} holdings of {} ranks", lane.prefix.size(),
                     by_rank.size());
    lane.line.resize(by_rank.size());
    std::iota(lane.line.begin(), lane.line.end(), 0U);
    std::ranges::stable_sort(lane.line, std::ranges::greater{}, [&](std::uint32_t r) { return lane.prefix[r]; });
    lane.place.resize(by_rank.size());
    for (std::uint32_t place = 0; place < lane.line.size(); ++place) lane.place[lane.line[place]] = place;
    TRIBUTARY_ASSERT(lane.prefix[lane.line.front()] == lane.hi && lane.prefix[lane.line.back()] == lane.lo,
                     "the line of a lane begins with {} results and ends with {}, of {} to {}",
                     lane.prefix[lane.line.front()], lane.prefix[lane.line.back()], lane.lo, lane.hi);
    // Skip results that no rank has seen (from hi on): the fallback reduces them again.
    for (const Holdings& holdings : by_rank) {
      std::ranges::copy_if(holdings[i].wanted, std::back_inserter(lane.wanted),
                           [&](std::uint64_t sequence) { return sequence < lane.hi; });
    }
    std::ranges::sort(lane.wanted);
    if (std::ranges::adjacent_find(lane.wanted) != lane.wanted.end())
      return fail(Errc::corrupt, "recovery: two ranks want one result for themselves");
  }
  return plan;
}

Moves RepairPlan::for_rank(std::uint32_t rank) const {
  Moves moves;
  for (const LaneRepair& lane : lanes_) {
    TRIBUTARY_ASSERT(rank < lane.prefix.size(), "moves for rank {} of {}", rank, lane.prefix.size());
    const std::uint64_t own = lane.prefix[rank], place = lane.place[rank];
    LaneMoves& m = moves.emplace_back(LaneMoves{.own = own, .lo = lane.lo, .hi = lane.hi, .wanted = lane.wanted});
    TRIBUTARY_ASSERT(lane.lo <= own && own <= lane.hi && lane.line[place] == rank, "rank {} has {} results of {} to {}",
                     rank, own, lane.lo, lane.hi);
    TRIBUTARY_ASSERT(own == lane.hi || place > 0, "rank {} is the first of its line and lacks results", rank);
    if (own < lane.hi) m.from = lane.line[place - std::bit_floor(place)];
    for (std::uint64_t bit = place == 0 ? 1 : 2 * std::bit_floor(place); place + bit < lane.line.size(); bit *= 2) {
      const std::uint32_t child = lane.line[place + bit];
      TRIBUTARY_ASSERT(lane.prefix[child] <= own, "rank {} holds {} results, its child rank {} holds {}", rank, own,
                       child, lane.prefix[child]);
      if (lane.prefix[child] < lane.hi) m.to.push_back({child, lane.prefix[child]});
    }
  }
  return moves;
}

}  // namespace tributary::client
