// The strategy for fabrics that are trees of domains, which all kinds are.
//
// Few choices decide a tree: on which levels of the fabric contributions are reduced before they go up, how many
// children an aggregator takes, and whether aggregators next to a switch are preferred over those below it. The planner
// builds every combination greedily, bottom-up, and estimates it; the best wins. A greedy choice can miss a better tree
// where aggregators of one domain differ much in rate. Exhaustive search was turned down because its cost grows with
// the number of aggregators to the power of the domains, while greedy building is linear in the domains that hold
// members.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <unordered_map>

#include "tree-manager/planner/candidate.h"
#include "tree-manager/planner/explain.h"
#include "tree-manager/planner/flight.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

constexpr std::uint32_t kFanIns[] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
// Estimates are less exact than this. Among trees so close to the fastest, the planner takes the tree that burdens the
// fabric least, then the simplest.
constexpr double kSameCost = 0.02;
// More lanes cost more connections and memory; the planner takes them where they save this part of the time.
constexpr double kLanesPay = 0.03;
constexpr std::uint32_t kNoLeaf = UINT32_MAX;

class LanePlanner {
 public:
  LanePlanner(const DomainTree& domains, const PlanRequest& request, Sites& sites)
      : request_(request), sites_(sites), builder_(sites), cost_(domains, sites, request) {
    fan_ins_ = fan_ins();
  }

  /// Plans the next lane's tree, and adds its load for the lanes after it. Returns false when there is none.
  bool next(std::uint32_t lane, std::uint64_t weight, LaneTree& tree, double& seconds) {
    for (std::uint32_t scope = sites_.lowest_common; scope != kNoSite; scope = sites_.sites[scope].parent) {
      // Without a tree here, look for aggregators further up.
      if (!best_within(scope, weight)) continue;
      TRIBUTARY_ASSERT(!best_.nodes.empty(), "the best tree of lane {} has no aggregator", lane);
      tree = materialise(lane);
      cost_.commit(best_, weight);
      seconds = std::max(seconds, best_.seconds);
      return true;
    }
    return false;
  }

  [[nodiscard]] PathRates rates() const { return cost_.rates(); }

 private:
  [[nodiscard]] std::vector<std::uint32_t> fan_ins() const {
    const auto ranks = static_cast<std::uint32_t>(sites_.order.size());
    std::set<std::uint32_t> found;
    const auto add = [&](std::uint32_t fan_in) { found.insert(std::clamp<std::uint32_t>(fan_in, 2, kChildrenMax)); };
    for (const std::uint32_t fan_in : kFanIns) add(std::min(fan_in, ranks));
    for (std::uint32_t levels = 1; levels <= kTreeLevelsMax; ++levels) {
      add(static_cast<std::uint32_t>(std::ceil(std::pow(ranks, 1.0 / levels) - 1e-9)));
    }
    return {found.begin(), found.end()};
  }

  /// Returns a mask of the levels below the scope at which something can be reduced.
  [[nodiscard]] std::uint32_t reducing_levels(std::uint32_t scope) const {
    std::uint32_t mask = 0;
    for (std::uint32_t s = 0; s < scope; ++s) {
      const Site& site = sites_.sites[s];
      if (site.aggregators_begin != site.aggregators_end) mask |= 1U << site.level;
    }
    return mask;
  }

  /// Builds and estimates every combination of choices.
  void try_all(std::uint32_t scope, std::uint64_t weight) {
    const std::uint32_t levels = reducing_levels(scope);
    for (const std::uint32_t fan_in : fan_ins_) {
      // Takes every subset, the full one first.
      for (std::uint32_t mask = levels;; mask = (mask - 1) & levels) {
        for (const bool own_first : {true, false}) {
          consider({.scope = scope,
                    .levels_mask = mask,
                    .fan_in = fan_in,
                    .own_first = own_first,
                    .levels_max = request_.levels_max,
                    .levels = request_.levels},
                   weight);
        }
        if (mask == 0) break;
      }
    }
  }

  void consider(const CandidateShape& shape, std::uint64_t weight) {
    if (!builder_.build(shape, weight, best_)) return;
    cost_.estimate(best_, weight);
    tried_.push_back({shape, best_.seconds, {best_.traffic, best_.mixed, best_.depth, best_.nodes.size()}});
  }

  /// Leaves the best tree within the scope in best_. Returns false when there is none.
  bool best_within(std::uint32_t scope, std::uint64_t weight) {
    const Site& site = sites_.sites[scope];
    if (site.aggregators_begin == site.aggregators_end) return false;
    tried_.clear();
    try_all(scope, weight);
    if (tried_.empty()) return false;
    const auto fastest = std::min_element(tried_.begin(), tried_.end(),
                                          [](const Tried& a, const Tried& b) { return a.seconds < b.seconds; });
    const double seconds_max = fastest->seconds * (1 + kSameCost);
    const Tried* best = &*fastest;
    for (const Tried& it : tried_) {
      if (it.seconds <= seconds_max && it.burden < best->burden) best = &it;
    }
    const bool built = builder_.build(best->shape, weight, best_);
    TRIBUTARY_ASSERT(built, "a tree with a fan-in of {} was built once, and cannot be built again", best->shape.fan_in);
    cost_.estimate(best_, weight);
    return true;
  }

  [[nodiscard]] LaneTree materialise(std::uint32_t lane) const {
    LaneTree tree;
    tree.leaf_of_rank.resize(sites_.order.size(), kNoLeaf);
    std::size_t placed = 0;
    tree.nodes.reserve(best_.nodes.size());
    for (std::uint32_t n = 0; n < best_.nodes.size(); ++n) {
      const CandidateNode& from = best_.nodes[n];
      const PlanAggregator& aggregator = aggregator_of(from);
      const Endpoint* const data = address_for_lane(aggregator.data, lane);
      TRIBUTARY_ASSERT(data != nullptr, "lane {} uses aggregator {}, and none of its addresses lives", lane,
                       aggregator.name);
      tree.nodes.push_back({.aggregator = aggregator.name,
                            .incarnation = aggregator.incarnation,
                            .host = aggregator.host,
                            .data = *data,
                            .parent = from.parent,
                            .data_changes = aggregator.data_changes});
      if (from.parent != kNoParent) {
        const PlanAggregator& parent = aggregator_of(best_.nodes[from.parent]);
        const Endpoint* const up = address_between(aggregator.data, parent.data, lane);
        TRIBUTARY_ASSERT(up != nullptr, "lane {} uses aggregator {}, and none of its addresses lives", lane,
                         parent.name);
        tree.nodes.back().up = *up;
      }
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

  [[nodiscard]] const PlanAggregator& aggregator_of(const CandidateNode& node) const {
    return request_.aggregators[sites_.aggregators[node.aggregator].index];
  }

  struct Tried {
    CandidateShape shape;
    double seconds = 0;
    std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::size_t> burden;  // traffic, mixed, depth, aggregators
  };

  const PlanRequest& request_;
  Sites& sites_;
  CandidateBuilder builder_;
  CostModel cost_;
  std::vector<std::uint32_t> fan_ins_;
  Candidate best_;
  std::vector<Tried> tried_;
};

using LoadByName = std::unordered_map<std::string, std::uint64_t>;

struct Adder {
  void operator()(std::uint64_t& at, std::uint64_t amount) const { at += amount; }
  void operator()(LoadByName& in, const std::string& name, std::uint64_t amount) const { in[name] += amount; }
};
/// Forgets names without load: a flat fabric takes any host name, and must not collect them for ever.
struct Remover {
  void operator()(std::uint64_t& at, std::uint64_t amount) const { at -= std::min(at, amount); }
  void operator()(LoadByName& in, const std::string& name, std::uint64_t amount) const {
    const auto found = in.find(name);
    if (found == in.end()) return;
    (*this)(found->second, amount);
    if (found->second == 0) in.erase(found);
  }
};

class DomainFabric final : public Fabric {
 public:
  explicit DomainFabric(const Topology& topology) : domains_(topology), knows_rates_(!topology.text.empty()) {}

  [[nodiscard]] bool knows_rates() const override { return knows_rates_; }
  [[nodiscard]] bool knows_host(const std::string& host) const override {
    return domains_.place(host).domain != kNoDomain;
  }
  [[nodiscard]] std::uint64_t host_rate(const std::string& host) const override {
    return domains_.place(host).rate_bits_per_second;
  }

  [[nodiscard]] Plan plan(const PlanRequest& wanted, const FabricLoad& load) const override {
    if (wanted.hosts.size() < 2)
      return {.reason = "no tree: a group of one rank has nothing to reduce", .window = wanted.window};
    PlanRequest request = wanted;
    if (!links_tell_rates(wanted)) request.link_rate_bits_per_second = 0;
    if (request.lanes == 0) return plan_as_many_as_pay(request, load);
    Plan best = plan_at_most(request, load, request.lanes);
    if (!best.lanes.empty() && best.lanes.size() < request.lanes) {
      best.reason = "only " + std::to_string(best.lanes.size()) + " of " + std::to_string(request.lanes) +
                    " lanes: the aggregators have no room for more";
    }
    return best;
  }

  void add(FabricLoad& load, std::span<const LaneTree> lanes, std::span<const std::string> hosts) const override {
    change(load, lanes, hosts, Adder{});
  }
  void remove(FabricLoad& load, std::span<const LaneTree> lanes, std::span<const std::string> hosts) const override {
    change(load, lanes, hosts, Remover{});
  }

 private:
  /// Returns whether the links' own rates stand in for those of a topology.
  [[nodiscard]] bool links_tell_rates(const PlanRequest& request) const {
    return !knows_rates_ && request.link_rate_bits_per_second != 0 &&
           std::ranges::all_of(request.aggregators, [](const PlanAggregator& aggregator) {
             return aggregator.line_rate_bits_per_second != 0 || !aggregator.unusable.empty();
           });
  }
  /// Returns whether the rates are known for a request that plan() has looked at.
  [[nodiscard]] bool knows_rates_for(const PlanRequest& request) const {
    return knows_rates_ || request.link_rate_bits_per_second != 0;
  }

  /// A lane carries its share of the traffic, so the number of lanes must be known before the first is planned: if
  /// there is room for fewer lanes than wanted, plans again with that number.
  [[nodiscard]] Plan plan_at_most(const PlanRequest& request, const FabricLoad& load, std::uint32_t lanes) const {
    Plan plan;
    while (lanes > 0) {
      plan = plan_lanes(request, load, lanes);
      TRIBUTARY_ASSERT(plan.lanes.size() <= lanes, "{} lanes were planned, of {}", plan.lanes.size(), lanes);
      if (plan.lanes.size() == lanes || plan.lanes.empty()) break;
      lanes = static_cast<std::uint32_t>(plan.lanes.size());
    }
    return plan;
  }

  /// More lanes bring in more aggregators, whose links add up. Where no rate is known, the planner cannot tell whether
  /// this helps.
  [[nodiscard]] Plan plan_as_many_as_pay(const PlanRequest& request, const FabricLoad& load) const {
    Plan best = plan_at_most(request, load, 1);
    if (!knows_rates_for(request) || best.lanes.empty()) return best;
    const auto usable = static_cast<std::uint32_t>(std::ranges::count_if(
        request.aggregators, [](const PlanAggregator& aggregator) { return aggregator.unusable.empty(); }));
    const std::uint32_t most = std::min(usable, kLanesMax);
    for (std::uint32_t lanes = 2; lanes <= most; lanes = lanes < most ? std::min(2 * lanes, most) : most + 1) {
      // The estimate of a single lane is best for a deep tree over all aggregators; many lanes of few levels load each
      // aggregator less.
      for (const std::uint32_t levels_max : {request.levels_max, 1U, 2U}) {
        if (levels_max > request.levels_max || (request.levels != 0 && levels_max < request.levels)) continue;
        PlanRequest narrowed = request;
        narrowed.levels_max = levels_max;
        Plan plan = plan_lanes(narrowed, load, lanes);
        if (plan.lanes.size() == lanes && plan.estimated_seconds < best.estimated_seconds * (1 - kLanesPay))
          best = std::move(plan);
      }
    }
    return best;
  }

  [[nodiscard]] Plan plan_lanes(const PlanRequest& wanted, const FabricLoad& load, std::uint32_t lanes) const {
    PlanRequest request = wanted;
    if (wanted.window_is_for_all) request.window = window_of_lane(wanted.window, lanes);
    Plan plan{.window = request.window};
    Sites sites = lay_out(domains_, request, load);
    if (!sites.unknown_host.empty()) {
      plan.reason = "no tree: host '" + sites.unknown_host + "' of rank " + std::to_string(sites.unknown_rank) +
                    " is not in the manager's topology; add it there, or set TRIBUTARY_HOST_ID to its name there";
      return plan;
    }
    LanePlanner planner(domains_, request, sites);
    const std::uint64_t weight = kFullRate / lanes;
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      LaneTree tree;
      if (!planner.next(lane, weight, tree, plan.estimated_seconds)) break;
      if (auto ok = tree.finish(); !ok) {
        plan.reason = ok.error().message;
        break;
      }
      plan.lanes.push_back(std::move(tree));
    }
    if (knows_rates_for(request) && !plan.lanes.empty()) plan.rates = planner.rates();
    if (wanted.window_is_for_all) plan.window = window_at(wanted.window, lanes, plan.rates);
    if (plan.lanes.empty() && plan.reason.empty()) plan.reason = explain_no_tree(domains_, request);
    return plan;
  }

  template <class Change>
  void change(FabricLoad& load, std::span<const LaneTree> lanes, std::span<const std::string> hosts,
              const Change& apply) const {
    if (lanes.empty()) return;
    load.uplinks.resize(domains_.domains().size(), 0);
    const std::uint64_t weight = kFullRate / lanes.size();
    std::vector<std::uint32_t> domain_of_rank(hosts.size());
    for (std::size_t r = 0; r < hosts.size(); ++r) domain_of_rank[r] = domains_.place(hosts[r]).domain;
    for (const LaneTree& lane : lanes) {
      for (std::size_t r = 0; r < hosts.size(); ++r) {
        edge(load, hosts[r], domain_of_rank[r], lane.nodes[lane.leaf_of_rank[r]], weight, apply);
      }
      for (const TreeNode& node : lane.nodes) {
        const bool root = node.parent == kNoParent;
        apply(load.aggregators, node.aggregator, weight * (node.children.size() + (root ? 0U : 1U)));
        if (root) continue;
        edge(load, node.host, domains_.place(node.host).domain, lane.nodes[node.parent], weight, apply);
      }
    }
  }

  template <class Change>
  void edge(FabricLoad& load, const std::string& from, std::uint32_t from_domain, const TreeNode& to,
            std::uint64_t weight, const Change& apply) const {
    if (from == to.host) return;
    apply(load.hosts, from, weight);
    apply(load.hosts, to.host, weight);
    const std::uint32_t to_domain = domains_.place(to.host).domain;
    // The topology has changed since the tree was planned.
    if (from_domain == kNoDomain || to_domain == kNoDomain) return;
    domains_.each_uplink_between(from_domain, to_domain, [&](std::uint32_t d) { apply(load.uplinks[d], weight); });
  }

  DomainTree domains_;
  const bool knows_rates_;
};

}  // namespace

std::unique_ptr<const Fabric> make_fabric(const Topology& topology) {
  return std::make_unique<DomainFabric>(topology);
}

}  // namespace tributary::manager
