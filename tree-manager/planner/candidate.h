#pragma once
// One way to build a lane's tree, and its cost. The strategy tries some hundred ways and keeps the best.
#include <cstdint>
#include <vector>

#include "tree-manager/planner/between_ranks.h"
#include "tree-manager/planner/lane_weights.h"
#include "tree-manager/planner/sites.h"

namespace tributary::manager {

struct CandidateShape {
  std::uint32_t view = 0;   // index in Sites::views
  std::uint32_t scope = 0;  // the site in which the root must be; it holds all members
  // Bit l: sites of level l below the scope reduce the data from below before it goes up.
  std::uint32_t levels_mask = 0;
  std::uint32_t fan_in = 0;    // number of children that an aggregator should have, if its limits allow
  std::uint64_t rate_min = 0;  // aggregators with slower links are left out
  bool own_first = true;       // aggregators with a cable to the site itself come before those below it
  std::uint32_t levels_max = 0;
  std::uint32_t levels = 0;  // exact number of levels; 0: any up to levels_max
  friend bool operator==(const CandidateShape&, const CandidateShape&) = default;
};

/// A contiguous part of Sites::order, at one site.
struct RankRun {
  std::uint32_t site = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct CandidateNode {
  std::uint32_t aggregator = 0;  // index in Sites::aggregators
  std::uint32_t parent = kNoParent;
  std::uint32_t depth = 1;
  std::uint32_t children = 0;
  std::vector<RankRun> runs;
  std::vector<std::uint32_t> below;  // nodes
};

struct Candidate {
  std::vector<CandidateNode> nodes;
  std::uint32_t depth = 0;
  std::uint32_t mixed = 0;  // aggregators with both ranks and aggregators as children
  // CostModel::estimate() sets these.
  double seconds = 0;
  std::uint64_t traffic = 0;  // sum over links between switches, in kFullRate units
};

/// Builds candidates over one layout; keeps its buffers between them.
class CandidateBuilder {
 public:
  explicit CandidateBuilder(const Sites& sites) : sites_(sites) {}
  /// Builds a candidate. Returns false if these choices give no tree. Does not set the estimate.
  [[nodiscard]] bool build(const CandidateShape& shape, std::uint64_t weight, Candidate& out);
  /// Call it after a change of aggregators' loads.
  void forget_queues();

 private:
  /// A site's aggregators, the least busy first.
  struct Queue {
    std::vector<std::uint32_t> order;
    std::uint32_t fan_in = 0;  // the fan-in for which the list was made; 0: there is no list yet
    bool any_fan_in = false;   // all links have the same rate, so the loads alone give the order
  };
  /// A run of ranks, or a node, that still needs a parent.
  struct Item {
    RankRun run;
    std::uint32_t node = kNoParent;
    [[nodiscard]] std::uint32_t count() const noexcept { return node == kNoParent ? run.end - run.begin : 1; }
  };
  using Items = std::vector<Item>;

  [[nodiscard]] static std::uint32_t count(const Items& items) noexcept;
  [[nodiscard]] std::uint32_t children_max(std::uint32_t aggregator) const {
    return sites_.budget(sites_.aggregators[aggregator]).children_max;
  }
  [[nodiscard]] const std::vector<std::uint32_t>& queue_of(const Site& site);
  [[nodiscard]] double busy(const CandidateNode& node) const;
  [[nodiscard]] std::uint32_t choose(const Site& site, std::uint32_t wanted, std::uint32_t children_min);
  [[nodiscard]] CandidateNode fresh_node(std::uint32_t aggregator);
  [[nodiscard]] bool reduce(const Site& site, Items& items, std::uint32_t children_min);
  void give(std::uint32_t aggregator, std::uint32_t children, const Items& items, std::size_t& at,
            std::uint32_t& offset, Items& out);
  void attach(CandidateNode& node, std::uint32_t self, const Item& item);
  [[nodiscard]] bool adopt(Items& items);
  [[nodiscard]] bool finish(const Site& site, Items& items);

  const Sites& sites_;
  CandidateShape shape_;
  std::uint64_t weight_ = 0;
  Candidate* out_ = nullptr;
  std::vector<Queue> queues_;          // index: site
  std::vector<CandidateNode> spare_;   // nodes of earlier trees, whose lists keep their memory for new nodes
  Items result_;                       // result of reduce()
  std::vector<Items> pending_;         // index: site
  std::vector<bool> used_;             // index: aggregator
  std::vector<std::uint32_t> chosen_;  // aggregators that choose() has chosen
};

/// Estimates the time of an operation over one lane's tree, for the load that is allotted already. All estimates (of
/// trees, members' links and the ways between ranks) count the load of other groups in the same way on each aggregator,
/// each link of a host and each uplink. A rate of 0 is unknown: an estimate then uses the assumed rate, and rates()
/// returns no rate of the path.
class CostModel {
 public:
  /// `lanes` lanes take the views in turn.
  CostModel(Sites& sites, const PlanRequest& request, std::uint32_t lanes);
  /// Estimates only this lane, with `weight` on every edge.
  void estimate(Candidate& candidate, std::uint64_t weight);
  /// Adds a lane of this view to the allotted load, in `sites`.
  void commit(const Candidate& candidate, std::uint32_t view, std::uint64_t weight);
  /// Gives the committed lanes the weights with which all lanes end together, and returns the weights. Lanes that are
  /// nearly equal keep equal weights.
  [[nodiscard]] std::vector<std::uint32_t> weigh();
  /// Estimates all committed lanes together.
  [[nodiscard]] double seconds() const;
  /// Returns the rates of all committed lanes together.
  [[nodiscard]] PathRates rates() const;

 private:
  struct Touched {
    std::vector<std::uint64_t> load;
    std::vector<std::uint32_t> which;
    void add(std::uint32_t i, std::uint64_t amount) {
      if (load[i] == 0) which.push_back(i);
      load[i] += amount;
    }
    void clear() {
      for (const std::uint32_t i : which) load[i] = 0;
      which.clear();
    }
  };
  /// The flows of a committed lane, each of which carries the lane's share.
  struct Lane {
    struct Flows {
      std::uint32_t which = 0;
      std::uint64_t count = 0;
    };
    std::vector<Flows> uplinks, hosts, aggregators;
    std::vector<Flows> leaving;  // index: host; flows of its own ranks to aggregators elsewhere
    std::uint32_t view = 0;
    std::uint64_t weight = 0;  // part of kFullRate
    double latency = 0;        // seconds
  };
  void put(const Candidate& candidate, std::uint64_t weight);
  [[nodiscard]] Lane lane_of(const Candidate& candidate, std::uint32_t view, std::uint64_t weight);
  [[nodiscard]] double latency_of(const Candidate& candidate) const;
  /// Adds the lane's flows to the allotted load, or takes them away.
  void change(const Lane& lane, bool adds);
  /// Adds the load of lanes to the members' interfaces. `parts`: index: view; in kFullRate units.
  void charge_members(const std::vector<std::uint64_t>& parts);
  void add_members(LaneBurden& burden) const;
  [[nodiscard]] LaneBurden burden() const;
  [[nodiscard]] std::uint64_t links_rate() const;
  [[nodiscard]] std::uint64_t trees_rate() const;
  [[nodiscard]] RankLinks links_between_ranks() const;
  void put_edge(std::uint32_t from_uplink, std::uint32_t from_host, const SiteAggregator& to, std::uint64_t amount);

  Sites& sites_;
  const PlanRequest& request_;
  double members_floor_ = 0;  // seconds per byte over the members' own links, which no tree changes
  std::vector<std::uint64_t> others_on_hosts_, others_on_uplinks_;  // the load of other groups
  std::vector<std::uint64_t> share_;        // index: host; the part of a rank's vector that lanes carry here
  std::vector<std::uint64_t> members_out_;  // index: host; load of its ranks' flows to aggregators elsewhere
  std::vector<std::uint64_t> charged_;      // index: host; the part of members_out_ that every tree has
  std::vector<bool> has_site_;              // index: host; true: its ranks' edges are counted one by one
  std::vector<Lane> lanes_;                 // lanes that were committed
  Touched uplinks_;
  Touched hosts_;
};

}  // namespace tributary::manager
