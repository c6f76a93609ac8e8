// The planner's trees compared with the best trees, which an exhaustive search finds on small fabrics by the same cost
// model. (R. Segal et al., "SOAR: Minimizing Network Utilization with Bounded In-network Computing", arXiv 2110.14224,
// compare placements in this way.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "tests/unit/manager/fabrics.h"
#include "tree-manager/planner/candidate.h"

namespace tributary::manager {
namespace {

constexpr std::uint32_t kUnplaced = UINT32_MAX;

/// A fabric with few aggregators, and a group of few ranks.
struct SmallCase {
  std::string yaml;
  std::vector<std::string> members;
  std::vector<PlanAggregator> aggregators;
};

/// Tries every tree over every set of aggregators, with every assignment of ranks to leaves.
class ExhaustiveSearch {
 public:
  ExhaustiveSearch(const Topology& topology, const PlanRequest& request)
      : domains_(topology),
        request_(request),
        index_(domains_, request.aggregators),
        sites_(lay_out(domains_, index_, request, {}, 1, Reach::fabric)),
        cost_(sites_, request_, 1) {
    for (std::uint32_t s = 0; s < sites_.sites.size(); ++s) {
      for (std::uint32_t i = sites_.sites[s].ranks_begin; i < sites_.sites[s].ranks_end; ++i) site_of_.push_back(s);
    }
  }

  /// Returns the time of the best tree; 0 if no tree is possible.
  double best() {
    const auto count = static_cast<std::uint32_t>(sites_.aggregators.size());
    for (std::uint32_t set = 1; set < 1U << count; ++set) {
      used_.clear();
      for (std::uint32_t a = 0; a < count; ++a) {
        if ((set >> a & 1U) != 0) used_.push_back(a);
      }
      for (std::uint32_t root = 0; root < used_.size(); ++root) {
        parent_.assign(used_.size(), kNoParent);
        choose_parents(0, root);
      }
    }
    return best_;
  }

 private:
  void choose_parents(std::uint32_t node, std::uint32_t root) {
    if (node == used_.size()) {
      leaf_.assign(site_of_.size(), kUnplaced);
      if (is_tree(root)) choose_leaves(0);
      return;
    }
    if (node == root) return choose_parents(node + 1, root);
    for (std::uint32_t parent = 0; parent < used_.size(); ++parent) {
      parent_[node] = parent;
      if (parent != node) choose_parents(node + 1, root);
    }
  }

  [[nodiscard]] bool is_tree(std::uint32_t root) const {
    for (std::uint32_t node = 0; node < used_.size(); ++node) {
      std::uint32_t at = node, steps = 0;
      while (at != root && steps++ < used_.size()) at = parent_[at];
      if (at != root) return false;
    }
    return true;
  }

  void choose_leaves(std::size_t rank) {
    if (rank == leaf_.size()) return estimate();
    for (std::uint32_t node = 0; node < used_.size(); ++node) {
      leaf_[rank] = node;
      choose_leaves(rank + 1);
    }
  }

  [[nodiscard]] std::uint32_t depth_of(std::uint32_t node) const {
    std::uint32_t below = 0;
    for (std::uint32_t n = 0; n < used_.size(); ++n) {
      if (parent_[n] == node) below = std::max(below, depth_of(n));
    }
    return below + 1;
  }

  void estimate() {
    Candidate tree;
    for (std::uint32_t n = 0; n < used_.size(); ++n) {
      tree.nodes.push_back({.aggregator = used_[n], .parent = parent_[n], .depth = depth_of(n)});
      tree.depth = std::max(tree.depth, tree.nodes.back().depth);
    }
    for (std::uint32_t n = 0; n < used_.size(); ++n) {
      if (parent_[n] == kNoParent) continue;
      tree.nodes[parent_[n]].below.push_back(n);
      ++tree.nodes[parent_[n]].children;
    }
    for (std::uint32_t i = 0; i < leaf_.size(); ++i) {
      tree.nodes[leaf_[i]].runs.push_back({site_of_[i], i, i + 1});
      ++tree.nodes[leaf_[i]].children;
    }
    for (const CandidateNode& node : tree.nodes) {
      const std::uint32_t most = sites_.budget(sites_.aggregators[node.aggregator]).children_max;
      if (node.children == 0 || node.children > most) return;
    }
    if (tree.depth > request_.levels_max) return;
    cost_.estimate(tree, kFullRate);
    if (best_ == 0 || tree.seconds < best_) best_ = tree.seconds;
  }

  const DomainTree domains_;
  const PlanRequest& request_;
  const AggregatorIndex index_;
  Sites sites_;
  CostModel cost_;
  std::vector<std::uint32_t> site_of_;  // by place in Sites::order
  std::vector<std::uint32_t> used_;     // aggregators of the tree
  std::vector<std::uint32_t> parent_;   // by place in used_
  std::vector<std::uint32_t> leaf_;     // by place in Sites::order
  double best_ = 0;
};

/// Makes small fabrics of each kind, with links and aggregators of unequal rates.
class SmallCases {
 public:
  explicit SmallCases(unsigned seed) : random_(seed) {}

  SmallCase leaf_spine() {
    const int leaves = pick(2, 3);
    SmallCase it{"switches: [{name: spine, level: 2}", {}, {}};
    for (int l = 0; l < leaves; ++l) it.yaml += ", {name: s" + std::to_string(l) + ", level: 1}";
    it.yaml += "]\n";
    std::vector<std::string> links;
    for (int l = 0; l < leaves; ++l) links.push_back(link("s" + std::to_string(l), "spine"));
    return finish(std::move(it), std::move(links), leaves, "spine");
  }

  SmallCase dragonfly() {
    SmallCase it{"fabric: dragonfly\nswitches: [{name: \"s[0-1]\", group: a}, {name: \"s[2-3]\", group: b}]\n", {}, {}};
    std::vector<std::string> links{link("s0", "s1"), link("s2", "s3"), link("s1", "s2"), link("s0", "s3")};
    return finish(std::move(it), std::move(links), 4, "s0");
  }

  SmallCase rails() {
    SmallCase it{
        "fabric: rail-optimised\nswitches: [{name: \"s[0-1]\", level: 1, rail: r}, {name: top, level: 2}]\n", {}, {}};
    std::vector<std::string> links{link("s0", "top"), link("s1", "top")};
    return finish(std::move(it), std::move(links), 2, "top");
  }

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

 private:
  std::string rate() {
    constexpr int kGbits[] = {25, 50, 100, 200, 400};
    return std::to_string(kGbits[pick(0, 4)]) + "Gbit/s";
  }
  std::string link(const std::string& from, const std::string& to) {
    return "  - {from: " + from + ", to: " + to + ", rate: " + rate() + "}\n";
  }

  /// Adds hosts at the switches s0, s1, ..., five ranks, and three aggregators anywhere.
  SmallCase finish(SmallCase it, std::vector<std::string> links, int switches, const std::string& top) {
    it.yaml += "hosts: [\"node-[0-5]\", \"agg-[0-2]\"]\nlinks:\n";
    for (int h = 0; h < 6; ++h)
      links.push_back("  - {from: node-" + std::to_string(h) + ", to: s" + std::to_string(h % switches) +
                      ", rate: 100Gbit/s}\n");
    for (int a = 0; a < 3; ++a) {
      const int at = pick(-1, switches - 1);
      const std::string name = "agg-" + std::to_string(a);
      links.push_back(link(name, at < 0 ? top : "s" + std::to_string(at)));
      it.aggregators.push_back(aggregator_on(pick(0, 3) == 0 ? "node-" + std::to_string(pick(0, 5)) : name));
      it.aggregators.back().name = name;
      it.aggregators.back().children_max = static_cast<std::uint32_t>(pick(2, 6));
    }
    for (const std::string& one : links) it.yaml += one;
    for (int r = 0; r < 5; ++r) it.members.push_back("node-" + std::to_string(pick(0, 5)));
    return it;
  }

  std::mt19937 random_;
};

/// Returns the planner's time divided by the best time; 0 if no tree is possible.
double ratio_to_best(const SmallCase& it, const std::string& what) {
  const auto topology = parse_topology(it.yaml, "small.yaml");
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  if (!topology) return 0;
  const PlanRequest request{
      .hosts = it.members, .aggregators = it.aggregators, .lanes = 1, .window = 32, .segment_bytes = 64U << 10};
  const Plan plan = make_fabric(*topology)->plan(request, {});
  const double best = ExhaustiveSearch(*topology, request).best();
  EXPECT_EQ(plan.lanes.empty(), best == 0) << what << ": the planner finds a tree wherever there is one\n" << it.yaml;
  if (plan.lanes.empty() || best == 0) return 0;
  const double ratio = plan.estimated_seconds / best;
  EXPECT_GE(ratio, 1 - 1e-9) << what << ": nothing is better than the best";
  return ratio;
}

/// Runs many cases, and checks their mean and their greatest ratio.
void expect_near_best(const char* what, int cases, double mean_max, double most_max,
                      const std::function<SmallCase(SmallCases&)>& make) {
  std::vector<double> ratios;
  for (int seed = 0; seed < cases; ++seed) {
    SmallCases from(static_cast<unsigned>(seed));
    const double ratio = ratio_to_best(make(from), std::string(what) + " " + std::to_string(seed));
    if (ratio != 0) ratios.push_back(ratio);
  }
  ASSERT_GT(ratios.size(), static_cast<std::size_t>(cases / 2));
  double sum = 0;
  for (const double ratio : ratios) sum += ratio;
  const double mean = sum / static_cast<double>(ratios.size()), most = *std::ranges::max_element(ratios);
  const auto best = std::ranges::count_if(ratios, [](double ratio) { return ratio < 1.0001; });
  std::printf("%s: %zu cases, the best tree in %ld, mean %.3f of the best time, at most %.2f\n", what, ratios.size(),
              static_cast<long>(best), mean, most);
  EXPECT_LE(mean, mean_max);
  EXPECT_LE(most, most_max);
}

TEST(PlannerQuality, IsNearTheBestOnSmallFatTrees) {
  expect_near_best("fat-tree", 150, 1.08, 4.1, [](SmallCases& from) { return from.leaf_spine(); });
}

TEST(PlannerQuality, IsNearTheBestOnSmallDragonflies) {
  expect_near_best("dragonfly", 100, 1.10, 2.1, [](SmallCases& from) { return from.dragonfly(); });
}

TEST(PlannerQuality, IsNearTheBestOnARail) {
  expect_near_best("rail", 100, 1.06, 3.3, [](SmallCases& from) { return from.rails(); });
}

}  // namespace
}  // namespace tributary::manager
