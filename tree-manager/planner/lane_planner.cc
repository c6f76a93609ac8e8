#include "tree-manager/planner/lane_planner.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::uint32_t kFanIns[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
// Estimates are not more exact than this part. Among trees that are so close to the fastest, the planner takes the tree
// with the least load on the fabric, then the simplest.
constexpr double kSameCost = 0.02;
constexpr std::uint32_t kNoLeaf = UINT32_MAX;
constexpr std::size_t kGoodOfADepth = 3;
constexpr std::size_t kTriedAgain = 2;
constexpr std::size_t kRatesMax = 3;

/// The sites, with the number of children that each aggregator can serve at this request's window.
Sites with_window(Sites sites, const PlanRequest& request) {
  for (AggregatorBudget& budget : sites.budgets)
    budget.children_max = children_possible(request.aggregators[budget.index], budget.memory_free_bytes, request);
  return sites;
}

/// Returns whether a tree of this number of levels can have this number of ranks.
bool can_hold(std::size_t ranks, std::uint32_t levels) {
  std::size_t most = 1;
  for (std::uint32_t level = 0; level < levels && most < ranks; ++level) most *= kChildrenMax;
  return most >= ranks;
}

}  // namespace

void GoodShapes::remember(std::vector<Good> tried) {
  // Among shapes that make the same tree, the shape with the fewest restrictions is best for further lanes.
  std::ranges::sort(tried, [](const Good& a, const Good& b) {
    return std::tuple(a.seconds, a.shape.rate_min, b.shape.fan_in) <
           std::tuple(b.seconds, b.shape.rate_min, a.shape.fan_in);
  });
  std::size_t kept[kTreeLevelsMax + 1] = {};
  const Good* last[kTreeLevelsMax + 1] = {};
  for (const Good& it : tried) {
    TRIBUTARY_ASSERT(it.depth <= kTreeLevelsMax, "a tree has {} levels", it.depth);
    const Good* const before = std::exchange(last[it.depth], &it);
    if (before != nullptr && before->seconds == it.seconds && before->aggregators == it.aggregators) continue;
    if (kept[it.depth]++ < kGoodOfADepth) good_.push_back(it);
  }
}

bool GoodShapes::same_with(std::uint32_t levels_max, std::uint32_t other_levels_max) const {
  if (good_.empty()) return false;
  const CandidateShape& first = good_.front().shape;
  const auto shapes = at(first.view, first.scope, levels_max);
  return !shapes.empty() && shapes == at(first.view, first.scope, other_levels_max);
}

std::vector<CandidateShape> GoodShapes::at(std::uint32_t view, std::uint32_t scope, std::uint32_t levels_max) const {
  std::vector<CandidateShape> found;
  for (const Good& it : good_) {
    if (found.size() == kTriedAgain) break;
    if (it.shape.view == view && it.shape.scope == scope && it.depth <= levels_max) found.push_back(it.shape);
  }
  return found;
}

LanePlanner::LanePlanner(const DomainTree& domains, const PlanRequest& request, const Sites& sites, std::uint32_t lanes,
                         GoodShapes& shapes)
    : domains_(domains),
      request_(request),
      sites_(with_window(sites, request)),
      builder_(sites_),
      cost_(sites_, request_, lanes),
      shapes_(shapes) {}

bool LanePlanner::next(std::uint64_t weight) {
  const auto views = static_cast<std::uint32_t>(sites_.views.size());
  // If rails are connected, a lane without a tree on its own rail takes the next rail: the ranks' packets reach it.
  const std::uint32_t tries = domains_.rails_meet() ? views : 1;
  for (std::uint32_t i = 0; i < tries; ++i, ++turn_) {
    const std::uint32_t view = turn_ % views;
    const std::uint32_t route = turn_ / views * domains_.routes() + sites_.views[view].route;
    if (!plan_on(view, weight)) {
      if (!domains_.rails().empty()) missing_rail_ = domains_.rails()[route % domains_.rails().size()];
      continue;
    }
    TRIBUTARY_ASSERT(!best_.nodes.empty(), "the best tree of lane {} has no aggregator", lanes_.size());
    cost_.commit(best_, view, weight);
    builder_.forget_queues();
    seconds_ = std::max(seconds_, best_.seconds);
    lanes_.push_back({std::move(best_), route});
    best_ = {};
    ++turn_;
    return true;
  }
  return false;
}

bool LanePlanner::plan_on(std::uint32_t view, std::uint64_t weight) {
  if (!can_hold(request_.hosts.size(), request_.levels_max)) return false;
  std::uint32_t scope = sites_.views[view].scope;
  // If there is no tree here, look for aggregators further up.
  while (scope != kNoSite && !best_within(view, scope, weight)) scope = sites_.sites[scope].parent;
  return scope != kNoSite;
}

/// Puts the best tree within the scope into best_. Returns false if there is no tree.
bool LanePlanner::best_within(std::uint32_t view, std::uint32_t scope, std::uint64_t weight) {
  const Site& site = sites_.sites[scope];
  if (site.aggregators_begin == site.aggregators_end) return false;
  tried_.clear();
  std::vector<CandidateShape> shapes = shapes_.at(view, scope, request_.levels_max);
  if (request_.lane_weights) add_slow_links(shapes);
  again_.resize(std::max(again_.size(), shapes.size()));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    CandidateShape shape = shapes[i];
    shape.levels_max = request_.levels_max;
    consider(shape, weight, again_[i]);
  }
  if (!tried_.empty()) {
    std::swap(best_, *best_tried().tree);
    return true;
  }
  try_all(view, scope, weight);
  if (tried_.empty()) return false;
  const CandidateShape& shape = best_tried().shape;
  const bool built = builder_.build(shape, weight, best_);
  TRIBUTARY_ASSERT(built, "a tree with a fan-in of {} was built once, and cannot be built again", shape.fan_in);
  cost_.estimate(best_, weight);
  return true;
}

/// Adds the shapes that allow all aggregators: a lane with a small part of the bytes may take a slow aggregator.
void LanePlanner::add_slow_links(std::vector<CandidateShape>& shapes) {
  for (std::size_t i = shapes.size(); i-- > 0;) {
    CandidateShape shape = shapes[i];
    shape.rate_min = 0;
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  }
}

/// Returns the candidate with the least load among the candidates that are about as fast as the fastest.
const LanePlanner::Tried& LanePlanner::best_tried() const {
  const auto fastest = std::ranges::min_element(tried_, {}, &Tried::seconds);
  const double seconds_max = fastest->seconds * (1 + kSameCost);
  const Tried* best = &*fastest;
  for (const Tried& it : tried_) {
    if (it.seconds <= seconds_max && it.burden < best->burden) best = &it;
  }
  return *best;
}

/// Builds and estimates every combination of choices.
void LanePlanner::try_all(std::uint32_t view, std::uint32_t scope, std::uint64_t weight) {
  const std::uint32_t levels = reducing_levels(view, scope);
  const std::vector<std::uint64_t> rates_min = rates(sites_.sites[scope]);
  for (const std::uint32_t fan_in : fan_ins(sites_.sites[scope])) {
    // Takes every subset, the full set first.
    for (std::uint32_t mask = levels;; mask = (mask - 1) & levels) {
      for (const std::uint64_t rate_min : rates_min) {
        for (const bool own_first : {true, false}) {
          consider({.view = view,
                    .scope = scope,
                    .levels_mask = mask,
                    .fan_in = fan_in,
                    .rate_min = rate_min,
                    .own_first = own_first,
                    .levels_max = request_.levels_max,
                    .levels = request_.levels},
                   weight, best_);
        }
      }
      if (mask == 0) break;
    }
  }
  std::vector<GoodShapes::Good> good;
  for (const Tried& it : tried_) good.push_back({it.shape, std::get<2>(it.burden), it.seconds, std::get<3>(it.burden)});
  shapes_.remember(std::move(good));
}

void LanePlanner::consider(const CandidateShape& shape, std::uint64_t weight, Candidate& tree) {
  if (!builder_.build(shape, weight, tree)) return;
  cost_.estimate(tree, weight);
  tried_.push_back({shape, tree.seconds, {tree.traffic, tree.mixed, tree.depth, tree.nodes.size()}, &tree});
}

/// Leaves out fan-ins with which all aggregators of the scope together cannot take the ranks, unless none would be
/// left.
std::vector<std::uint32_t> LanePlanner::fan_ins(const Site& scope) const {
  const auto ranks = static_cast<std::uint32_t>(request_.hosts.size());
  std::set<std::uint32_t> found;
  const auto add = [&](std::uint32_t fan_in) { found.insert(std::clamp<std::uint32_t>(fan_in, 2, kChildrenMax)); };
  for (const std::uint32_t fan_in : kFanIns) add(std::min(fan_in, ranks));
  for (std::uint32_t levels = 1; levels <= kTreeLevelsMax; ++levels)
    add(static_cast<std::uint32_t>(std::ceil(std::pow(ranks, 1.0 / levels) - 1e-9)));
  const std::size_t aggregators = scope.aggregators_end - scope.aggregators_begin;
  const auto enough = [&](std::uint32_t fan_in) { return fan_in * aggregators >= ranks; };
  if (enough(*found.rbegin())) std::erase_if(found, [&](std::uint32_t fan_in) { return !enough(fan_in); });
  return {found.begin(), found.end()};
}

/// Returns the least rates to try: 0, and a few of the rates of the scope's aggregators if these differ.
std::vector<std::uint64_t> LanePlanner::rates(const Site& scope) const {
  std::set<std::uint64_t> found;
  for (std::uint32_t a = scope.aggregators_begin; a < scope.aggregators_end; ++a)
    found.insert(rate_or_assumed(sites_.aggregators[a].line_rate_bits_per_second));
  found.erase(found.begin());
  while (found.size() > kRatesMax) found.erase(std::next(found.begin(), static_cast<std::ptrdiff_t>(found.size() / 2)));
  found.insert(0);
  return {found.begin(), found.end()};
}

/// Returns a mask of the levels below the scope at which contributions can be reduced.
std::uint32_t LanePlanner::reducing_levels(std::uint32_t view, std::uint32_t scope) const {
  std::uint32_t mask = 0;
  for (std::uint32_t s = sites_.views[view].sites_begin; s < scope; ++s) {
    const Site& site = sites_.sites[s];
    if (site.aggregators_begin != site.aggregators_end) mask |= 1U << site.level;
  }
  return mask;
}

std::vector<LaneTree> LanePlanner::trees() const {
  std::vector<LaneTree> trees;
  trees.reserve(lanes_.size());
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) trees.push_back(materialise(lane));
  return trees;
}

/// An aggregator on a host with several interfaces has an address for each of them. Otherwise its addresses are used in
/// turn.
std::uint32_t LanePlanner::address_number(const SiteAggregator& at, std::uint32_t route) const {
  const std::uint32_t host = domains_.find(request_.aggregators[at.index].host);
  return domains_.interfaces(host) > 1 ? at.interface : route;
}

TreeNode LanePlanner::node_of(const Lane& lane, const CandidateNode& from) const {
  const SiteAggregator& at = sites_.aggregators[from.aggregator];
  const PlanAggregator& aggregator = request_.aggregators[at.index];
  const std::uint32_t number = address_number(at, lane.route);
  const Endpoint* const data = address_for_lane(aggregator.data, number);
  TRIBUTARY_ASSERT(data != nullptr, "a lane uses aggregator {}, and none of its addresses lives", aggregator.name);
  TreeNode node{.aggregator = aggregator.name,
                .incarnation = aggregator.incarnation,
                .host = aggregator.host,
                .data = *data,
                .parent = from.parent,
                .data_changes = aggregator.data_changes};
  if (from.parent == kNoParent) return node;
  const SiteAggregator& above = sites_.aggregators[lane.tree.nodes[from.parent].aggregator];
  const PlanAggregator& parent = request_.aggregators[above.index];
  const std::uint32_t parent_number = address_number(above, lane.route);
  const Endpoint* const up = number == parent_number ? address_between(aggregator.data, parent.data, number)
                                                     : address_for_lane(parent.data, parent_number);
  TRIBUTARY_ASSERT(up != nullptr, "a lane uses aggregator {}, and none of its addresses lives", parent.name);
  node.up = *up;
  return node;
}

LaneTree LanePlanner::materialise(std::size_t number) const {
  const Lane& lane = lanes_[number];
  LaneTree tree{.weight = weights_.empty() ? 1 : weights_[number]};
  tree.route = lane.route;
  if (!domains_.rails().empty()) tree.rail = domains_.rails()[lane.route % domains_.rails().size()];
  tree.leaf_of_rank.resize(request_.hosts.size(), kNoLeaf);
  std::size_t placed = 0;
  tree.nodes.reserve(lane.tree.nodes.size());
  for (std::uint32_t n = 0; n < lane.tree.nodes.size(); ++n) {
    const CandidateNode& from = lane.tree.nodes[n];
    tree.nodes.push_back(node_of(lane, from));
    for (const RankRun& run : from.runs) {
      TRIBUTARY_ASSERT(run.begin < run.end && run.end <= sites_.order.size(), "node {} has ranks {} to {}, of {}", n,
                       run.begin, run.end, sites_.order.size());
      placed += run.end - run.begin;
      for (std::uint32_t i = run.begin; i < run.end; ++i) tree.leaf_of_rank[sites_.order[i]] = n;
    }
  }
  const bool each_has_one = std::ranges::find(tree.leaf_of_rank, kNoLeaf) == tree.leaf_of_rank.end();
  TRIBUTARY_ASSERT(each_has_one && placed == tree.leaf_of_rank.size(), "{} ranks got a leaf, of {}", placed,
                   tree.leaf_of_rank.size());
  return tree;
}

}  // namespace tributary::manager
