#pragma once
// Plans the trees of a group's lanes, one after the other.
//
// Few choices decide a tree: on which levels of the fabric contributions are reduced before they go up, how many
// children an aggregator takes, and whether aggregators next to a switch are preferred over those below it. The planner
// builds every combination greedily, bottom-up, and estimates it; the best wins. A greedy choice can miss a better tree
// where aggregators of one domain differ much in rate: planner_quality_test compares it with an exhaustive search, whose
// cost grows with the number of aggregators to the power of the domains.
#include <cstdint>
#include <tuple>
#include <vector>

#include "tree-manager/planner/candidate.h"

namespace tributary::manager {

/// The shapes with which the first lane's trees were quickest. All further lanes of the group try these alone: on the
/// same members and much the same aggregators the others would lose again.
class GoodShapes {
 public:
  struct Good {
    CandidateShape shape;
    std::uint32_t depth = 0;
    double seconds = 0;
    std::size_t aggregators = 0;
  };
  /// Keeps the best few of each depth, and one of several shapes that make the same tree.
  void remember(std::vector<Good> tried);
  /// Returns a few good shapes of this view and scope for trees of at most so many levels, the best first.
  [[nodiscard]] std::vector<CandidateShape> at(std::uint32_t view, std::uint32_t scope, std::uint32_t levels_max) const;
  /// Says whether the first lanes of a group would try the same shapes with one bound on the levels as with the other.
  [[nodiscard]] bool same_with(std::uint32_t levels_max, std::uint32_t other_levels_max) const;

 private:
  std::vector<Good> good_;
};

class LanePlanner {
 public:
  /// Takes a copy of `sites`, with the load as it was before this group; `lanes` are to come.
  LanePlanner(const DomainTree& domains, const PlanRequest& request, const Sites& sites, std::uint32_t lanes,
              GoodShapes& shapes);
  LanePlanner(const LanePlanner&) = delete;
  LanePlanner& operator=(const LanePlanner&) = delete;

  /// Plans the next lane's tree, and adds its load for the lanes after it. Returns false when there is none.
  bool next(std::uint64_t weight);
  [[nodiscard]] std::uint32_t lanes() const noexcept { return static_cast<std::uint32_t>(lanes_.size()); }
  /// Gives the lanes the weights with which all of them end together; before, they have what next() was told.
  void weigh() {
    weights_ = cost_.weigh();
    seconds_ = cost_.seconds();
  }
  /// Estimates the slowest lane.
  [[nodiscard]] double seconds() const noexcept { return seconds_; }
  [[nodiscard]] PathRates rates() const { return cost_.rates(); }
  /// Returns the name of the rail on which the last next() found no tree; "" where there are no rails.
  [[nodiscard]] const std::string& missing_rail() const noexcept { return missing_rail_; }
  /// Writes the lanes out. LaneTree::finish() is still to come.
  [[nodiscard]] std::vector<LaneTree> trees() const;

 private:
  struct Lane {
    Candidate tree;
    std::uint32_t route = 0;
  };
  struct Tried {
    CandidateShape shape;
    double seconds = 0;
    std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::size_t> burden;  // traffic, mixed, depth, aggregators
    Candidate* tree = nullptr;  // a later candidate may have taken its place
  };

  [[nodiscard]] bool plan_on(std::uint32_t view, std::uint64_t weight);
  [[nodiscard]] bool best_within(std::uint32_t view, std::uint32_t scope, std::uint64_t weight);
  void try_all(std::uint32_t view, std::uint32_t scope, std::uint64_t weight);
  void consider(const CandidateShape& shape, std::uint64_t weight, Candidate& tree);
  [[nodiscard]] const Tried& best_tried() const;
  static void add_slow_links(std::vector<CandidateShape>& shapes);
  [[nodiscard]] std::vector<std::uint32_t> fan_ins(const Site& scope) const;
  [[nodiscard]] std::vector<std::uint64_t> rates(const Site& scope) const;
  [[nodiscard]] std::uint32_t reducing_levels(std::uint32_t view, std::uint32_t scope) const;
  [[nodiscard]] LaneTree materialise(std::size_t number) const;
  [[nodiscard]] TreeNode node_of(const Lane& lane, const CandidateNode& from) const;
  [[nodiscard]] std::uint32_t address_number(const SiteAggregator& at, std::uint32_t route) const;

  const DomainTree& domains_;
  const PlanRequest request_;
  Sites sites_;
  CandidateBuilder builder_;
  CostModel cost_;
  GoodShapes& shapes_;
  Candidate best_;
  std::vector<Candidate> again_;  // of the good shapes
  std::vector<Tried> tried_;
  std::vector<Lane> lanes_;
  std::uint32_t turn_ = 0;              // counts views tried
  std::vector<std::uint32_t> weights_;  // by lane; empty: equal
  double seconds_ = 0;
  std::string missing_rail_;
};

}  // namespace tributary::manager
