#include "tree-manager/planner/between_ranks.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tree-manager/planner/narrowest.h"
#include "tributary/protocol/assert.h"

namespace tributary::manager {
namespace {

/// The flows of one step in which ranks send at the same time, on each link.
class Step {
 public:
  explicit Step(const RankLinks& links)
      : links_(links), leaving_(links.hosts.size(), 0), crossing_(links.uplinks.size(), 0) {}

  void clear() {
    std::ranges::fill(leaving_, 0);
    std::ranges::fill(crossing_, 0);
  }
  /// Adds an edge that loads its links in one direction. As many edges must load each uplink in the other direction.
  void add_edge(std::uint32_t from, std::uint32_t to) {
    if (from == to) return;
    leaving_[from] += 2;
    cross(from, to, 1);
  }
  /// Adds two ranks of these hosts that send to each other.
  void add_pair(std::uint32_t a, std::uint32_t b) {
    if (a == b) return;
    leaving_[a] += 2;
    leaving_[b] += 2;
    cross(a, b, 2);
  }
  /// Returns the rate of each flow; 0 if no flow leaves a host, or the rate of a link in use is not known.
  [[nodiscard]] std::uint64_t rate() const {
    Narrowest narrowest;
    const auto use = [&](const std::vector<std::uint64_t>& halves, const std::vector<RankLinks::Link>& of) {
      for (std::size_t i = 0; i < halves.size(); ++i) {
        if (halves[i] != 0) narrowest.use(of[i].others + kFullRate * halves[i] / 2, of[i].bits_per_second);
      }
    };
    use(leaving_, links_.hosts);
    use(crossing_, links_.uplinks);
    return narrowest.rate();
  }

 private:
  void cross(std::uint32_t from, std::uint32_t to, std::uint64_t halves) {
    std::uint32_t a = links_.uplink_of_host[from], b = links_.uplink_of_host[to];
    while (a != b) {
      std::uint32_t& lower = a < b ? a : b;
      crossing_[lower] += halves;
      lower = links_.parent_of_uplink[lower];
    }
  }

  const RankLinks& links_;
  std::vector<std::uint64_t> leaving_;   // by host: halves of flows
  std::vector<std::uint64_t> crossing_;  // by uplink: halves of flows in one direction
};

/// The ring goes through all members in the order of ranks.
std::uint64_t ring_rate(const RankLinks& links, Step& step) {
  const auto ranks = links.host_of_rank.size();
  step.clear();
  for (std::size_t r = 0; r < ranks; ++r) step.add_edge(links.host_of_rank[r], links.host_of_rank[(r + 1) % ranks]);
  return step.rate();
}

/// The time of all steps, for one bit of the vector, and the part of the vector that a rank sends in them.
struct Steps {
  double bytes = 0;
  double seconds = 0;
  void add(double part, std::uint64_t rate) {
    bytes += part;
    if (rate > 0) seconds += part / static_cast<double>(rate);  // else the partners share hosts
  }
  [[nodiscard]] std::uint64_t rate() const {
    if (seconds <= 0) return 0;
    return static_cast<std::uint64_t>(std::llround(std::min(bytes / seconds, static_cast<double>(kPathRateMax))));
  }
};

/// Counts the steps of client/schedule/doubling.cc. In step j, the cores c and c ^ 2^j exchange: in recursive doubling
/// the whole vector, in halving-doubling a part of 1 / 2^(j+1), there and back. Before and after, ranks that are no
/// cores exchange with the core after them.
void set_doubling(const RankLinks& links, Step& step, PathRates& rates) {
  const auto ranks = static_cast<std::uint32_t>(links.host_of_rank.size());
  const std::uint32_t cores = std::bit_floor(ranks), folded = ranks - cores;
  const auto host = [&](std::uint32_t core) {
    return links.host_of_rank[core < folded ? 2 * core + 1 : core + folded];
  };
  Steps doubling, halving;
  if (folded > 0) {
    step.clear();
    for (std::uint32_t i = 0; i < folded; ++i) step.add_pair(links.host_of_rank[2 * i], links.host_of_rank[2 * i + 1]);
    const std::uint64_t rate = step.rate();
    doubling.add(2, rate);
    halving.add(2, rate);
  }
  for (std::uint32_t distance = 1; distance < cores; distance *= 2) {
    step.clear();
    for (std::uint32_t core = 0; core < cores; ++core) {
      if (const std::uint32_t partner = core ^ distance; core < partner) step.add_pair(host(core), host(partner));
    }
    const std::uint64_t rate = step.rate();
    doubling.add(1, rate);
    halving.add(1.0 / distance, rate);
  }
  rates.doubling = doubling.rate();
  rates.halving = halving.rate();
}

/// Returns the rate of a rank that sends equal parts of its bytes to all other ranks. A link with k of N ranks on its
/// one side carries k (N-k) / (N-1) flows.
std::uint64_t spread_rate(const RankLinks& links) {
  const std::uint64_t ranks = links.host_of_rank.size();
  std::vector<std::uint64_t> on_host(links.hosts.size(), 0), below(links.uplinks.size(), 0);
  for (const std::uint32_t host : links.host_of_rank) ++on_host[host];
  Narrowest narrowest;
  const auto use = [&](std::uint64_t inside, const RankLinks::Link& link) {
    if (inside == 0 || inside == ranks) return;
    narrowest.use(link.others + kFullRate * inside * (ranks - inside) / (ranks - 1), link.bits_per_second);
  };
  for (std::size_t h = 0; h < on_host.size(); ++h) {
    use(on_host[h], links.hosts[h]);
    if (on_host[h] > 0) below[links.uplink_of_host[h]] += on_host[h];
  }
  for (std::size_t u = 0; u + 1 < below.size(); ++u) {  // the root is the last, and has no uplink
    use(below[u], links.uplinks[u]);
    if (below[u] > 0) below[links.parent_of_uplink[u]] += below[u];
  }
  return narrowest.rate();
}

}  // namespace

void set_rates_between(const RankLinks& links, PathRates& rates) {
  TRIBUTARY_ASSERT(
      links.hosts.size() == links.uplink_of_host.size() && links.uplinks.size() == links.parent_of_uplink.size(),
      "{} hosts have {} first uplinks, {} uplinks have {} parents", links.hosts.size(), links.uplink_of_host.size(),
      links.uplinks.size(), links.parent_of_uplink.size());
  Step step(links);
  rates.ranks = ring_rate(links, step);
  // A ring uses the link of every host and every uplink that other ways use, so their rates are known, too.
  if (rates.ranks == 0) return;
  set_doubling(links, step, rates);
  rates.spread = spread_rate(links);
}

}  // namespace tributary::manager
