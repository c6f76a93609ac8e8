#pragma once
// Plans the trees of a group's lanes, one after the other.
//
// A few choices determine a tree: the levels of the fabric on which contributions are reduced before they go up, the
// number of children of an aggregator, and whether aggregators next to a switch are preferred to aggregators below it.
// The planner builds a tree for every combination of choices, greedily and bottom-up, estimates it, and takes the best.
// A greedy choice can miss a better tree if the rates of aggregators in one domain differ much. planner_quality_test
// compares it with an exhaustive search, whose cost grows as the number of aggregators to the power of the number of
// domains.
#include <cstdint>
#include <tuple>
#include <vector>

#include "tree-manager/planner/candidate.h"

namespace tributary::manager {

/// The shapes with which the first lane's trees were fastest. All further lanes of the group try only these: with the
/// same members and nearly the same aggregators, the other shapes would be slower again.
class GoodShapes {
 public:
  struct Good {
    CandidateShape shape;
    std::uint32_t depth = 0;
    double seconds = 0;
    std::size_t aggregators = 0;
  };
  /// Adds a shape. Keeps the best few of each depth, and one of several shapes that make the same tree.
  void remember(std::vector<Good> tried);
  /// Returns a few good shapes of this view and scope for trees of at most `levels_max` levels, the best first.
  [[nodiscard]] std::vector<CandidateShape> at(std::uint32_t view, std::uint32_t scope, std::uint32_t levels_max) const;
  /// Returns whether the first lanes of a group would try the same shapes with both bounds on the levels.
  [[nodiscard]] bool same_with(std::uint32_t levels_max, std::uint32_t other_levels_max) const;

 private:
  std::vector<Good> good_;
};

class LanePlanner {
 public:
  /// Takes a copy of `sites`, with the load before this group; `lanes` lanes will be planned.
  LanePlanner(const DomainTree& domains, const PlanRequest& request, const Sites& sites, std::uint32_t lanes,
              GoodShapes& shapes);
  LanePlanner(const LanePlanner&) = delete;
  LanePlanner& operator=(const LanePlanner&) = delete;

  /// Plans the next lane's tree, and adds its load for later lanes. Returns false if there is no tree.
  bool next(std::uint64_t weight);
  [[nodiscard]] std::uint32_t lanes() const noexcept { return static_cast<std::uint32_t>(lanes_.size()); }
  /// Gives the lanes the weights with which all of them end together, in place of the parts that next() got.
  void weigh() {
    weights_ = cost_.weigh();
    seconds_ = cost_.seconds();
  }
  /// Estimates the slowest lane.
  [[nodiscard]] double seconds() const noexcept { return seconds_; }
  [[nodiscard]] PathRates rates() const { return cost_.rates(); }
  /// Returns the name of the rail on which the last next() found no tree; "" if there are no rails.
  [[nodiscard]] const std::string& missing_rail() const noexcept { return missing_rail_; }
  /// Returns the lanes. The caller must still call LaneTree::finish().
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
  std::vector<Candidate> again_;  // candidates of the good shapes
  std::vector<Tried> tried_;
  std::vector<Lane> lanes_;
  std::uint32_t turn_ = 0;              // number of views that were tried
  std::vector<std::uint32_t> weights_;  // index: lane; empty: equal weights
  double seconds_ = 0;
  std::string missing_rail_;
};

}  // namespace tributary::manager
