#include "client/tuning/cost_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/tuning/demand.h"
#include "client/tuning/tree_segments.h"

namespace tributary::tuning {
namespace {

constexpr double kReducing = 0.25;  // cost to reduce or copy a byte, in costs to send or receive a byte
constexpr std::uint32_t kFanInMax = 16;
// The least part of the time that a split must save: the model counts only a part of its messages and processor time.
constexpr double kSplitPays = 0.04;
// The number of shares that a split can have below the largest share: few, because each is a line of rank 0's policy.
constexpr double kShareSteps = 16;

// Costs of exact sums of float32, in the same unit and beside fast ones: bench/kernels/kernels_bench.
constexpr double kReducingExactly = 0.4;
constexpr double kStagedChunk = 1U << 20;  // bytes that are copied at once (client/gpu/staged_call.h)
constexpr double kFormBytes = 1.25;  // bytes between aggregators for each byte of a vector: 5 for a Gaussian float32

// Returns a core's rate in bytes per microsecond: 1 GB/s is 1000 bytes per microsecond.
double core_rate(const Figures& figures) noexcept {
  return figures.core_gbytes * 1000;
}
double wire_rate(const Figures& figures) noexcept {
  const double core = core_rate(figures);
  return figures.link_gbits > 0 ? std::min(figures.link_gbits * 125, core) : core;
}

/// Returns the rate that the topology gives this algorithm between the ranks; 0: not known.
double gbits_between(const Figures& figures, Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::ring:
      return figures.ring_gbits;
    case Algorithm::recursive_doubling:
      return figures.doubling_gbits;
    case Algorithm::halving_doubling:
      return figures.halving_gbits;
    case Algorithm::direct:
    case Algorithm::bruck:  // its last messages, which are the longest, go halfway around all ranks
    case Algorithm::pairwise:
      return figures.spread_gbits;
    default:
      return 0;
  }
}

/// Returns the rate of a rank's traffic with other ranks. Uplinks may limit it for every algorithm. It may be more than
/// the link's rate: if neighbours share a host, few of a ring's edges leave the host.
double rate_between(const Figures& figures, Algorithm algorithm) noexcept {
  const double wire = wire_rate(figures), core = core_rate(figures);
  if (figures.ring_gbits <= 0) return wire;
  if (const double gbits = gbits_between(figures, algorithm); gbits > 0) return std::min(gbits * 125, core);
  return std::min({figures.ring_gbits * 125, wire, core});
}

bool reduces(Collective collective) noexcept {
  return row_of(collective).reduces;
}

/// Returns whether the call's sums are exact.
bool is_exact(const Figures& figures, Collective collective) noexcept {
  return figures.exact && reduces(collective);
}

/// Returns the cost to reduce a byte, in costs to send or receive a byte.
double reducing(const Figures& figures, Collective collective) noexcept {
  return is_exact(figures, collective) ? kReducingExactly : kReducing;
}

Demand demand_of(const Figures& figures, Collective collective, Algorithm algorithm, double ranks,
                 double bytes) noexcept {
  if (is_exact(figures, collective)) return exact_demand(collective, ranks, bytes);
  return demand(collective, algorithm, ranks, bytes);
}

double levels_of(const Figures& figures, double ranks) noexcept {
  if (figures.levels > 0) return figures.levels;
  double levels = 1, children = ranks;
  while (children > kFanInMax) {
    ++levels;
    children = std::ceil(std::pow(ranks, 1 / levels) - 1e-9);
  }
  return levels;
}

double lightest_lane(const Figures& figures) noexcept {
  return figures.lightest_lane > 0 ? figures.lightest_lane : 1.0 / figures.lanes;
}

double heaviest_lane(const Figures& figures) noexcept {
  return figures.heaviest_lane > 0 ? figures.heaviest_lane : 1.0 / figures.lanes;
}

/// Returns the rate of a vector through all lanes. In trees of several levels, exact sums are longer between
/// aggregators.
double trees_rate(const Figures& figures, const Call& call) noexcept {
  const double rate = figures.trees_gbits * 125;
  const bool forms = reduces(call.collective) && forms_travel(figures, levels_of(figures, call.ranks));
  return forms ? rate / kFormBytes : rate;
}

/// Returns the time for which one segment keeps its lane's slowest link busy: the link of an aggregator with its
/// children. Lanes have different rates, so the lane with the least rate takes longest.
double segment_us(const Figures& figures, const Call& call) noexcept {
  const double lane_rate = trees_rate(figures, call) * lightest_lane(figures);
  return static_cast<double>(std::min<std::uint64_t>(call.bytes, figures.segment_bytes)) / lane_rate;
}

/// Returns the time of these bytes through trees whose rate is known. The segments are dealt to the lanes; one segment
/// above its share costs the slowest lane the most time. A rank's link sends to the last lane a little later than to
/// the first lane. The lane's last segment then still goes up the other levels, and down all levels.
double narrow_trees_us(const Figures& figures, const Call& call, double bytes) noexcept {
  const double levels = levels_of(figures, call.ranks);
  const double segments = std::ceil(bytes / figures.segment_bytes);
  const double lightest = lightest_lane(figures);
  const double of_one_lane = std::ceil(segments * lightest - 1e-9) * figures.segment_bytes;
  return std::min(bytes, of_one_lane) / (trees_rate(figures, call) * lightest) +
         (2 * levels - 1) * segment_us(figures, call) +
         (std::min<double>(segments, figures.lanes) - 1) * figures.segment_bytes / wire_rate(figures);
}

/// Returns the share of all ranks' work that one host does.
double host_share(const Figures& figures, double ranks) noexcept {
  return std::min<double>(figures.ranks_per_host, ranks) / ranks;
}

/// The bytes that one rank sends to the tree and gets back, and the bytes of all ranks.
struct TreeBytes {
  double busiest_one_way = 0;
  double all = 0;
};
TreeBytes tree_bytes(Collective collective, double ranks, double bytes) noexcept {
  switch (pattern_of(collective)) {
    case Pattern::all_to_all_ranks:
      return {bytes, 2 * ranks * bytes};
    case Pattern::all_to_one:
    case Pattern::one_to_all:
      return {bytes, (ranks + 1) * bytes};
    case Pattern::nothing:
      return {};
  }
  return {};
}

/// The bytes that the busiest rank copies from and to its GPU, and the microseconds that a byte takes.
struct Staging {
  double down = 0, up = 0;
  double us_per_byte = 0;
};
Staging staging_of(const Figures& figures, const Call& call) noexcept {
  if (figures.staging_gbytes <= 0) return {};
  const CollectiveRow& row = row_of(call.collective);
  const auto bytes = static_cast<double>(call.bytes);
  const bool parts = row.send == Extent::per_rank || row.recv == Extent::per_rank;
  const auto of = [&](Extent extent) {
    if (extent == Extent::none) return 0.0;
    return parts && extent == Extent::one ? bytes / call.ranks : bytes;
  };
  return {.down = of(row.send), .up = of(row.recv), .us_per_byte = 1 / (figures.staging_gbytes * 1000)};
}

/// Returns the number of children of each aggregator.
double children_of(double levels, double ranks) noexcept {
  return std::ceil(std::pow(ranks, 1 / levels) - 1e-9);
}

/// Returns the time in which an aggregator's core receives, reduces and sends the bytes of all its children. Each lane
/// has a core of its own, so the lane with the most bytes takes longest.
double aggregator_us(const Figures& figures, Collective collective, double ranks, double bytes) noexcept {
  const double reduced = reduces(collective) ? reducing(figures, collective) * ranks * bytes : 0;
  const double children = children_of(levels_of(figures, ranks), ranks);
  return (tree_bytes(collective, ranks, bytes).all + reduced) * children / ranks * heaviest_lane(figures) /
         core_rate(figures);
}

}  // namespace

const char* name(Path path) noexcept {
  switch (path) {
    case Path::tree:
      return "tree";
    case Path::ranks:
      return "ranks";
    case Path::split:
      return "split";
  }
  return "invalid";
}

Estimate estimate_tree(const Figures& figures, const Call& call) noexcept {
  Estimate estimate{.path = Path::tree};
  if (call.ranks < 2) return estimate;
  const double ranks = call.ranks;
  const double bytes = static_cast<double>(call.bytes);
  const double levels = levels_of(figures, ranks);
  const double children = children_of(levels, ranks);
  const TreeBytes moved = tree_bytes(call.collective, ranks, bytes);
  const double core = core_rate(figures);
  const double reduced = reduces(call.collective) ? ranks * bytes : 0;
  estimate.latency_us = std::max(2 * levels * figures.hop_us, 2 * children * figures.aggregator_us);
  estimate.transfer_us = std::max(
      (moved.busiest_one_way + std::min(bytes, static_cast<double>(figures.segment_bytes))) / wire_rate(figures),
      aggregator_us(figures, call.collective, ranks, bytes));
  if (figures.trees_gbits > 0)
    estimate.transfer_us = std::max(estimate.transfer_us, narrow_trees_us(figures, call, moved.busiest_one_way));
  const Staging staging = staging_of(figures, call);
  estimate.latency_us +=
      (std::min(staging.down, kStagedChunk) + std::min(staging.up, kStagedChunk)) * staging.us_per_byte;
  estimate.transfer_us = std::max(estimate.transfer_us, std::max(staging.down, staging.up) * staging.us_per_byte);
  const bool shared = figures.ranks_per_host >= call.ranks;  // the aggregators are on the ranks' host
  const double ranks_us = 2 * ranks * (figures.hop_us - figures.aggregator_us) + moved.all / core;
  const double aggregators_us = 2 * ranks * figures.aggregator_us + reducing(figures, call.collective) * reduced / core;
  estimate.processors_us = (ranks_us * host_share(figures, ranks) + (shared ? aggregators_us : 0)) / figures.cores;
  return estimate;
}

Estimate estimate_ranks(const Figures& figures, const Call& call, Algorithm algorithm) noexcept {
  Estimate estimate{.path = Path::ranks, .algorithm = algorithm};
  if (call.ranks < 2) return estimate;
  const double ranks = call.ranks;
  const Demand d = demand_of(figures, call.collective, algorithm, ranks, static_cast<double>(call.bytes));
  const double core = core_rate(figures), reduced = reducing(figures, call.collective);
  estimate.latency_us = d.rounds * figures.message_us + kReducing * d.copied / core;
  estimate.transfer_us = std::max(d.bytes * d.slowdown / rate_between(figures, algorithm),
                                  (d.bytes * d.slowdown + reduced * d.reduced) / core);
  const Staging staging = staging_of(figures, call);
  estimate.transfer_us += (staging.down + staging.up) * staging.us_per_byte;
  const double work = d.messages * figures.message_us +
                      (d.all_bytes * d.slowdown + reduced * d.all_reduced + kReducing * ranks * d.copied) / core;
  estimate.processors_us = work * host_share(figures, ranks) / figures.cores;
  return estimate;
}

std::span<const Algorithm> algorithms_of(const Figures& figures, Collective collective) noexcept {
  static constexpr Algorithm kExact[] = {Algorithm::direct};
  if (is_exact(figures, collective)) return kExact;
  return schedule::algorithms(collective);
}

bool can_split(Collective collective) noexcept {
  return collective == Collective::all_reduce || collective == Collective::reduce ||
         collective == Collective::broadcast;
}

namespace {

/// The share of the bytes that the trees carry, between 0 and 1, so that trees and ranks end at the same time.
///
/// T, r and R are the rates of the trees, of the ring and of a rank's link. T is the rate of the aggregators' links or,
/// if it is less, of their cores. For each byte of the operation the trees need share / T (`trees`: 1 / T), the ring
/// needs (1 - share) x ratio / r, and a rank's link, which carries both parts, needs share / R + (1 - share) x ratio /
/// R. `ahead_us`: the time for which the ranks' bytes already flow before the trees' first segment has passed through
/// all levels. So in a short operation the trees get a smaller share. `staged`: the microseconds that a byte's copy from
/// or to a GPU takes. The ranks' part waits until the whole input is down, and its result goes up at the end, so the
/// trees get a larger share.
struct Shares {
  double largest = 0;  // share of an operation that is so long that only the rates count
  double here = 0;
};
Shares shares_of(const Figures& figures, double trees, double ratio, double ring_rate, double bytes, double ahead_us,
                 double staged) noexcept {
  const double link = 1 / wire_rate(figures);
  const double ring = ratio / ring_rate;
  const double ring_on_link = ratio / std::max(ring_rate, wire_rate(figures));
  // No split: a byte in the ring uses less of the links than a byte in the trees.
  if (ring_on_link < link) return {};
  const double by_ring = trees + ring + staged;
  const double by_links = trees + ring_on_link - link;
  const auto at = [&](double late_us) {
    const double late = late_us / bytes - staged;
    return std::clamp(std::max((ring + staged - late) / by_ring, (ring_on_link - late) / by_links), 0.0, 1.0);
  };
  return {at(0), at(std::max(ahead_us, 0.0))};
}

}  // namespace

std::optional<Estimate> estimate_split(const Figures& figures, const Call& call, Algorithm algorithm) {
  if (!can_split(call.collective) || figures.trees_gbits <= 0 || call.ranks < 2 || call.bytes == 0) return std::nullopt;
  constexpr double kAnyBytes = 1U << 30;  // the same size for every call, so that rounding does not change the share
  const Demand d = demand_of(figures, call.collective, algorithm, call.ranks, kAnyBytes);
  const double ratio = d.bytes * d.slowdown / kAnyBytes;
  const double ring_rate = rate_between(figures, algorithm);
  const auto bytes = static_cast<double>(call.bytes);
  const double fill_us = (2 * levels_of(figures, call.ranks) - 1) * segment_us(figures, call);
  const double ahead_us =
      fill_us + estimate_tree(figures, call).latency_us - estimate_ranks(figures, call, algorithm).latency_us;
  const Staging staging = staging_of(figures, call);
  const double trees = std::max(1 / trees_rate(figures, call), aggregator_us(figures, call.collective, call.ranks, 1));
  const Shares shares = shares_of(figures, trees, ratio, ring_rate, bytes, ahead_us, staging.us_per_byte);
  if (shares.largest <= 0) return std::nullopt;
  const double share = shares.largest * std::round(kShareSteps * shares.here / shares.largest) / kShareSteps;
  const auto whole = static_cast<std::uint32_t>(std::lround(share * kWholeShare));
  if (whole == 0 || whole >= kWholeShare || !divides(figures, call.bytes, whole)) return std::nullopt;
  const auto bytes_of = [&](double part) { return static_cast<std::uint64_t>(part * bytes); };
  const Estimate by_trees = estimate_tree(figures, {call.collective, call.ranks, bytes_of(share)});
  Estimate by_ranks = estimate_ranks(figures, {call.collective, call.ranks, bytes_of(1 - share)}, algorithm);
  by_ranks.transfer_us += share * staging.down * staging.us_per_byte;  // they wait for the trees' input, too
  const double wire = wire_rate(figures);
  const double links_us = (share / wire + (1 - share) * ratio / std::max(ring_rate, wire)) * bytes;
  return Estimate{.path = Path::split,
                  .algorithm = algorithm,
                  .tree_share = whole,
                  .latency_us = std::max(by_trees.latency_us, by_ranks.latency_us),
                  .transfer_us = std::max({by_trees.transfer_us, by_ranks.transfer_us, links_us}),
                  .processors_us = by_trees.processors_us + by_ranks.processors_us};
}

std::vector<Estimate> estimates(const Figures& figures, const Call& call) {
  std::vector<Estimate> all;
  if (in_network_capable(call.collective)) all.push_back(estimate_tree(figures, call));
  for (const Algorithm algorithm : algorithms_of(figures, call.collective))
    all.push_back(estimate_ranks(figures, call, algorithm));
  if (const auto fastest =
          std::ranges::min_element(all, {},
                                   [](const Estimate& it) {
                                     return it.path == Path::ranks ? it.time_us() : std::numeric_limits<double>::max();
                                   });
      fastest != all.end() && fastest->path == Path::ranks && in_network_capable(call.collective)) {
    const double alone = std::ranges::min(all, {}, &Estimate::time_us).time_us();
    const auto split = estimate_split(figures, call, fastest->algorithm);
    if (split && split->time_us() < alone * (1 - kSplitPays)) all.push_back(*split);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Estimate& a, const Estimate& b) { return a.time_us() < b.time_us(); });
  return all;
}

}  // namespace tributary::tuning
