// The strategy for fabrics that are trees of domains. All kinds of fabrics are such trees.
#include <algorithm>
#include <functional>
#include <set>

#include "tree-manager/planner/explain.h"
#include "tree-manager/planner/flight.h"
#include "tree-manager/planner/lane_planner.h"
#include "tree-manager/planner/load_change.h"
#include "tree-manager/planner/present_rates.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

// More lanes cost more connections and memory; the planner takes more if they save this part of the time.
constexpr double kLanesPay = 0.03;
// Rates that differ by less than this part count as equal.
constexpr double kAlike = 0.02;
// Aggregators far from the members load links that other groups need; to be used they must save this part of the time.
constexpr double kAbovePays = 0.05;

class DomainFabric final : public Fabric {
 public:
  explicit DomainFabric(const Topology& topology) : domains_(topology), knows_rates_(!topology.text.empty()) {}

  [[nodiscard]] bool knows_rates() const override { return knows_rates_; }
  [[nodiscard]] bool knows_host(const std::string& host) const override {
    return domains_.place(host).domain != kNoDomain;
  }
  [[nodiscard]] std::uint64_t host_rate(const std::string& host) const override {
    const std::uint32_t number = domains_.find(host);
    if (number == kUnknownHost) return 0;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < domains_.interfaces(number); ++i)
      sum += domains_.place(number, i).rate_bits_per_second;
    return sum;
  }
  [[nodiscard]] PathRates rates(const TreesInUse& trees, const FabricLoad& load) const override {
    if (trees.lanes.empty() || (!knows_rates_ && trees.link_rate_bits_per_second == 0)) return {};
    TreesInUse known = trees;
    if (knows_rates_) known.link_rate_bits_per_second = 0;
    return present_rates(domains_, load, known);
  }
  [[nodiscard]] std::uint32_t address_number(const std::string& host, std::uint32_t route) const override {
    const std::uint32_t number = domains_.find(host);
    if (number == kUnknownHost || domains_.interfaces(number) == 1) return route;
    const std::uint32_t interface = domains_.interface_of(number, route);
    return interface == kNoInterface ? route : interface;
  }
  [[nodiscard]] std::shared_ptr<const AggregatorIndex> index(
      std::span<const PlanAggregator> aggregators) const override {
    return std::make_shared<const AggregatorIndex>(domains_, aggregators);
  }

  [[nodiscard]] Plan plan(const PlanRequest& wanted, const FabricLoad& load) const override {
    if (wanted.hosts.size() < 2)
      return {.reason = "no tree: a group of one rank has nothing to reduce", .window = wanted.window};
    PlanRequest request = wanted;
    if (!links_tell_rates(wanted)) request.link_rate_bits_per_second = 0;
    Plan plan = plan_for(request, load);
    if (wanted.rail.empty()) return plan;
    const std::string rail(wanted.rail);
    if (!domains_.rail_number(wanted.rail)) {
      if (plan.reason.empty()) plan.reason = "the topology has no rail '" + rail + "' (TRIBUTARY_RAIL)";
    } else if (plan.lanes.empty() && domains_.rails_meet()) {
      request.rail = {};
      if (Plan other = plan_for(request, load); !other.lanes.empty()) {
        other.reason = "no tree is possible on the ranks' own rail '" + rail + "': they reach other rails by the spine";
        return other;
      }
    }
    return plan;
  }

  void add(FabricLoad& load, std::span<const LaneTree> lanes, std::span<const std::string> hosts) const override {
    change_load(domains_, load, lanes, hosts, LoadChange::add);
  }
  void remove(FabricLoad& load, std::span<const LaneTree> lanes, std::span<const std::string> hosts) const override {
    change_load(domains_, load, lanes, hosts, LoadChange::remove);
  }

 private:
  [[nodiscard]] Plan plan_for(const PlanRequest& request, const FabricLoad& load) const {
    const Planned near = plan_within(request, load, Reach::members);
    // Called if there are no aggregators near the members, or too few.
    if (near.plan.lanes.empty() || near.plan.lanes.size() < request.lanes)
      return plan_within(request, load, Reach::fabric).plan;
    if (near.is_whole || !is_narrow(near.plan)) return near.plan;
    Plan wide = plan_within(request, load, Reach::above).plan;
    const bool pays = wide.estimated_seconds < near.plan.estimated_seconds * (1 - kAbovePays);
    return !wide.lanes.empty() && wide.lanes.size() >= request.lanes && pays ? wide : near.plan;
  }

  /// Returns whether the links' own rates are used in place of the rates of a topology.
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

  /// The state that all trials of one request share.
  struct Search {
    const PlanRequest& request;
    const Sites& sites;
    Reach reach = Reach::members;
    GoodShapes shapes{};
    std::string missing_rail{};  // the first rail on which a lane found no tree
  };
  /// Lanes that were planned together.
  struct Trial {
    std::unique_ptr<LanePlanner> planner;  // nullptr: there is no tree
    std::uint32_t window = 0;              // segments for which each lane has memory
    [[nodiscard]] std::uint32_t lanes() const { return planner ? planner->lanes() : 0; }
  };

  struct Planned {
    Plan plan;
    bool is_whole = false;  // no aggregator is further away than the aggregators that this trial could use
  };

  [[nodiscard]] Planned plan_within(const PlanRequest& request, const FabricLoad& load, Reach reach) const {
    const Sites sites = sites_of(request, load, reach);
    if (!sites.unknown_host.empty()) return {.plan = {.reason = why_no_place(sites), .window = request.window}};
    Search search{.request = request, .sites = sites, .reach = reach};
    const Trial best = request.lanes == 0 ? as_many_as_pay(search) : so_many(search, request.lanes);
    return {.plan = plan_of(best, search),
            .is_whole = sites.sites[sites.views.front().lowest_common].parent == kNoSite};
  }

  /// True if the aggregators carry less than the ranks can send.
  [[nodiscard]] static bool is_narrow(const Plan& plan) {
    const PathRates& rates = plan.rates;
    return rates.trees != 0 && static_cast<double>(rates.trees) < static_cast<double>(rates.links) * (1 - kAlike);
  }

  /// Lays the group out once for all trials, with every aggregator that a trial can use: with more lanes, each lane's
  /// window is smaller, and a child takes less memory.
  [[nodiscard]] Sites sites_of(const PlanRequest& wanted, const FabricLoad& load, Reach reach) const {
    PlanRequest request = wanted;
    const std::uint32_t lanes = wanted.lanes == 0 ? kLanesMax : wanted.lanes;
    if (wanted.window_is_for_all) request.window = window_of_lane(wanted.window, 1, lanes);
    const std::uint32_t routes = std::min(lanes, domains_.routes());
    if (wanted.index != nullptr) {
      TRIBUTARY_ASSERT(wanted.index->size() == wanted.aggregators.size(), "an index of {} aggregators, for {}",
                       wanted.index->size(), wanted.aggregators.size());
      return lay_out(domains_, *wanted.index, request, load, routes, reach);
    }
    return lay_out(domains_, AggregatorIndex(domains_, wanted.aggregators), request, load, routes, reach);
  }

  [[nodiscard]] std::string why_no_place(const Sites& sites) const {
    const std::string who = "no tree: host '" + sites.unknown_host + "' of rank " + std::to_string(sites.unknown_rank);
    if (sites.off_all_routes)
      return who + " has no link to a rail on which all other hosts have one; give it such a link in the topology";
    return who + " is not in the manager's topology; add it there, or set TRIBUTARY_HOST_ID to its name there";
  }

  /// Lanes are planned one by one, with a part of the bytes each, and get their weights when all are planned. Equal
  /// parts suit equal aggregators. An aggregator with a slow link is too slow for an equal part, so if rates differ the
  /// parts follow the rates.
  [[nodiscard]] Trial try_lanes(Search& search, std::uint32_t lanes, std::uint32_t levels_max) const {
    TRIBUTARY_ASSERT(lanes > 0, "a trial of {} lanes", lanes);
    Parts equal(lanes, kFullRate / lanes);
    const bool weighs = search.request.lane_weights && lanes > 1 && knows_rates_for(search.request);
    const Parts by_rate = weighs ? parts_by_rate(search, lanes) : equal;
    const std::uint64_t heaviest = std::max(equal.front(), by_rate.front());
    Trial trial = try_parts(search, equal, heaviest, levels_max);
    if (weighs && trial.lanes() > 1) trial.planner->weigh();
    if (by_rate == equal) return trial;
    Trial other = try_parts(search, by_rate, heaviest, levels_max);
    if (other.lanes() < trial.lanes() || other.lanes() < 2) return trial;
    other.planner->weigh();
    return other.planner->seconds() < trial.planner->seconds() * (1 - kAlike) ? std::move(other) : std::move(trial);
  }

  using Parts = std::vector<std::uint64_t>;  // index: lane; in kFullRate units, the greatest first

  /// Returns parts in proportion to the rates of the fastest aggregators near the members. The load of other groups on
  /// an aggregator reduces its rate. Lanes of several rails have equal parts.
  [[nodiscard]] static Parts parts_by_rate(const Search& search, std::uint32_t lanes) {
    const Sites& sites = search.sites;
    Parts equal(lanes, kFullRate / lanes);
    const Site& near = sites.sites[sites.views.front().scope];
    const bool enough = near.aggregators_end - near.aggregators_begin >= lanes;
    const Site& scope = enough ? near : sites.sites.back();
    if (sites.views.size() > 1 || scope.aggregators_end - scope.aggregators_begin < lanes) return equal;
    const auto children = static_cast<double>(std::min<std::size_t>(search.request.hosts.size(), kChildrenMax));
    std::vector<double> rates;
    for (std::uint32_t a = scope.aggregators_begin; a < scope.aggregators_end; ++a) {
      const SiteAggregator& at = sites.aggregators[a];
      const double flows = static_cast<double>(sites.budget(at).load) / static_cast<double>(kFullRate);
      rates.push_back(static_cast<double>(rate_or_assumed(at.line_rate_bits_per_second)) / (flows + children));
    }
    std::ranges::partial_sort(rates, rates.begin() + lanes, std::greater{});
    rates.resize(lanes);
    if (rates.back() >= rates.front() * (1 - kAlike)) return equal;
    double sum = 0;
    for (const double rate : rates) sum += rate;
    Parts parts;
    for (const double rate : rates)
      parts.push_back(
          std::max<std::uint64_t>(static_cast<std::uint64_t>(rate / sum * static_cast<double>(kFullRate)), 1));
    return parts;
  }

  [[nodiscard]] Trial try_parts(Search& search, const Parts& parts, std::uint64_t heaviest,
                                std::uint32_t levels_max) const {
    const auto lanes = static_cast<std::uint32_t>(parts.size());
    PlanRequest request = search.request;
    request.levels_max = levels_max;
    if (request.window_is_for_all)
      request.window = window_of_lane(request.window, static_cast<std::uint32_t>(heaviest), kFullRate);
    Trial trial{std::make_unique<LanePlanner>(domains_, request, search.sites, lanes, search.shapes), request.window};
    for (const std::uint64_t part : parts) {
      if (trial.planner->next(part)) continue;
      if (search.missing_rail.empty()) search.missing_rail = trial.planner->missing_rail();
      break;
    }
    return trial;
  }

  /// Divides the window of a link among the lanes by their weights; no lane gets more than its memory allows.
  static void share_window(Plan& plan, std::uint32_t window, std::uint32_t window_max) {
    const std::uint32_t sum = weight_of(plan.lanes);
    plan.window = 0;
    for (LaneTree& lane : plan.lanes) {
      lane.window = std::min(window_max, window_at(window, lane.weight, sum, plan.rates));
      plan.window = std::max(plan.window, lane.window);
    }
    for (LaneTree& lane : plan.lanes) {
      if (lane.window == plan.window) lane.window = 0;
    }
  }

  /// A lane carries its share of the traffic, so the number of lanes must be known before the first lane is planned. If
  /// there is room for fewer lanes than wanted, this function plans again with that number.
  [[nodiscard]] Trial at_most(Search& search, std::uint32_t lanes) const {
    Trial trial;
    while (lanes > 0) {
      trial = try_lanes(search, lanes, search.request.levels_max);
      TRIBUTARY_ASSERT(trial.lanes() <= lanes, "{} lanes were planned, of {}", trial.lanes(), lanes);
      if (trial.lanes() == lanes || trial.lanes() == 0) break;
      lanes = trial.lanes();
    }
    return trial;
  }

  /// Returns the numbers of lanes to try: powers of two, and numbers with which all interfaces of the hosts carry the
  /// same load. With aggregators everywhere it returns only the greatest number: the others were tried near the
  /// members.
  [[nodiscard]] std::vector<std::uint32_t> lane_counts(const Search& search) const {
    const std::uint32_t most = std::min(static_cast<std::uint32_t>(search.sites.budgets.size()), kLanesMax);
    std::set<std::uint32_t> counts;
    for (std::uint32_t lanes = 2; lanes < most && search.reach != Reach::above; lanes *= 2) counts.insert(lanes);
    if (domains_.routes() > 1 && domains_.routes() <= most) counts.insert(domains_.routes());
    if (most >= 2) counts.insert(most);
    return {counts.begin(), counts.end()};
  }

  /// Replaces `best` by the best lanes of few levels, if they save this part of the time. The estimate of a single lane
  /// is best for a deep tree over all aggregators, but many lanes of few levels load each aggregator less.
  void try_few_levels(Search& search, std::uint32_t lanes, double saves, Trial& best) const {
    const PlanRequest& request = search.request;
    for (const std::uint32_t levels_max : {1U, 2U}) {
      if (levels_max >= request.levels_max || (request.levels != 0 && levels_max < request.levels)) continue;
      if (search.shapes.same_with(levels_max, request.levels_max)) continue;
      Trial trial = try_lanes(search, lanes, levels_max);
      if (trial.lanes() == lanes && trial.planner->seconds() < best.planner->seconds() * (1 - saves))
        best = std::move(trial);
    }
  }

  [[nodiscard]] Trial so_many(Search& search, std::uint32_t lanes) const {
    Trial best = at_most(search, lanes);
    if (best.lanes() > 1) try_few_levels(search, best.lanes(), kAlike, best);
    return best;
  }

  /// More lanes use more aggregators, whose links add up. If no rate is known, the planner cannot tell whether this
  /// helps. It tries all numbers: if each lane gets few aggregators, many lanes may help where few do not.
  [[nodiscard]] Trial as_many_as_pay(Search& search) const {
    const PlanRequest& request = search.request;
    Trial best = at_most(search, 1);
    if (!knows_rates_for(request) || best.lanes() == 0) return best;
    for (const std::uint32_t lanes : lane_counts(search)) {
      Trial trial = try_lanes(search, lanes, request.levels_max);
      if (trial.lanes() == lanes && trial.planner->seconds() < best.planner->seconds() * (1 - kLanesPay))
        best = std::move(trial);
      try_few_levels(search, lanes, kLanesPay, best);
    }
    return best;
  }

  [[nodiscard]] Plan plan_of(const Trial& trial, const Search& search) const {
    const PlanRequest& request = search.request;
    Plan plan{.window = trial.window};
    if (trial.lanes() == 0) {
      PlanRequest asked = request;
      asked.window = trial.window;
      plan.reason = explain_no_tree(domains_, asked);
      return plan;
    }
    plan.lanes = trial.planner->trees();
    for (LaneTree& lane : plan.lanes) {
      if (auto ok = lane.finish(); !ok) return {.reason = ok.error().message, .window = trial.window};
    }
    plan.estimated_seconds = trial.planner->seconds();
    if (knows_rates_for(request)) plan.rates = trial.planner->rates();
    if (request.window_is_for_all) share_window(plan, request.window, trial.window);
    if (trial.lanes() < request.lanes) {
      const std::string& rail = search.missing_rail;
      plan.reason = "only " + std::to_string(trial.lanes()) + " of " + std::to_string(request.lanes) +
                    " lanes: the aggregators" + (rail.empty() ? "" : " of rail '" + rail + "'") +
                    " have no room for more";
    }
    return plan;
  }

  DomainTree domains_;
  const bool knows_rates_;
};

}  // namespace

std::unique_ptr<const Fabric> make_fabric(const Topology& topology) {
  return std::make_unique<DomainFabric>(topology);
}

}  // namespace tributary::manager
