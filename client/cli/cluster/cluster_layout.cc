#include "client/cli/cluster/cluster_layout.h"

#include <algorithm>

#include "service-kit/units.h"
#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

/// The number of switches on each level; [0] is the lowest level.
using Counts = std::vector<std::uint32_t>;

/// Returns the parent of switch i of a level: switch i * above / below of the next level, so that neighbours share a
/// parent.
std::uint32_t parent_of(std::uint32_t i, std::uint32_t below, std::uint32_t above) {
  TRIBUTARY_ASSERT(i < below && above <= below, "number {} of {}, below {}", i, below, above);
  return static_cast<std::uint32_t>(std::uint64_t{i} * above / below);
}

/// Returns, for each level above the lowest, the number of children of each switch. A switch with one child needs a
/// rank of its own, because an aggregator with one child reduces nothing.
std::vector<std::vector<std::uint32_t>> children_counts(const Counts& counts) {
  std::vector<std::vector<std::uint32_t>> children(counts.size());
  for (std::size_t level = 1; level < counts.size(); ++level) {
    children[level].assign(counts[level], 0);
    for (std::uint32_t i = 0; i < counts[level - 1]; ++i)
      ++children[level][parent_of(i, counts[level - 1], counts[level])];
  }
  return children;
}

std::uint32_t ranks_needed(const Counts& counts) {
  std::uint32_t needed = 2 * counts[0];
  for (const auto& level : children_counts(counts))
    needed += static_cast<std::uint32_t>(std::count(level.begin(), level.end(), 1U));
  return needed;
}

/// Chooses the numbers of switches: as many as aggregators, if there are enough ranks. Each level has at least as many
/// switches as the level above it.
Counts choose_counts(const ClusterShape& shape, std::uint32_t levels) {
  Counts counts(levels, 1);
  for (std::uint32_t used = levels; used < shape.aggregators && levels > 1; ++used) {
    std::size_t best = 0;
    const auto ratio = [&](std::size_t l) { return static_cast<double>(counts[l]) / counts[l + 1]; };
    for (std::size_t level = 1; level + 1 < levels; ++level) {
      if (ratio(level) < ratio(best) && counts[level] < counts[level - 1]) best = level;
    }
    ++counts[best];
    if (ranks_needed(counts) <= shape.ranks) continue;
    --counts[best];
    break;
  }
  return counts;
}

std::string switch_name(std::size_t level, std::uint32_t i) {
  return "switch-" + std::to_string(level + 1) + "-" + std::to_string(i);
}

class Writer {
 public:
  Writer(const ClusterShape& shape, Counts counts) : shape_(shape), counts_(std::move(counts)) {}

  ClusterLayout write() {
    out_.levels = static_cast<std::uint32_t>(counts_.size());
    place_aggregators();
    place_ranks();
    add_uplinks();
    out_.topology = "fabric: fat-tree\nswitches:\n" + switches_ + "hosts:\n" + hosts_ + "links:\n" + links_;
    return std::move(out_);
  }

 private:
  void add_host(const std::string& host, const std::string& at, std::uint64_t bits_per_second) {
    hosts_ += "  - " + host + "\n";
    links_ += "  - {from: " + host + ", to: " + at + ", rate: " + service::rate_text(bits_per_second) + "}\n";
  }

  void add_aggregator(std::size_t level, std::uint32_t at) {
    const std::string name = "aggregator-" + std::to_string(out_.aggregators.size());
    out_.aggregators.push_back({name, "beside-" + name, static_cast<std::uint32_t>(level + 1)});
    add_host(out_.aggregators.back().host, switch_name(level, at), shape_.aggregator_bits_per_second);
  }

  void place_aggregators() {
    for (std::size_t level = 0; level < counts_.size(); ++level) {
      for (std::uint32_t i = 0; i < counts_[level]; ++i) {
        switches_ += "  - {name: " + switch_name(level, i) + ", level: " + std::to_string(level + 1) + "}\n";
        add_aggregator(level, i);
      }
    }
    for (std::uint32_t spare = 0; out_.aggregators.size() < shape_.aggregators; ++spare)
      add_aggregator(0, spare % counts_[0]);
    TRIBUTARY_ASSERT(out_.aggregators.size() == shape_.aggregators, "{} aggregators are placed, not {}",
                     out_.aggregators.size(), shape_.aggregators);
  }

  void place_ranks() {
    std::vector<std::string> alone;  // switches above the leaves that need a rank of their own
    const auto children = children_counts(counts_);
    for (std::size_t level = 1; level < counts_.size(); ++level) {
      for (std::uint32_t i = 0; i < counts_[level]; ++i)
        if (children[level][i] == 1) alone.push_back(switch_name(level, i));
    }
    TRIBUTARY_ASSERT(alone.size() < shape_.ranks, "{} switches need a rank of their own, of {} ranks", alone.size(),
                     shape_.ranks);
    const auto below = shape_.ranks - static_cast<std::uint32_t>(alone.size());
    for (std::uint32_t rank = 0; rank < shape_.ranks; ++rank) {
      const std::string host = "worker-" + std::to_string(rank);
      out_.host_of_rank.push_back(host);
      add_host(host, rank < below ? switch_name(0, parent_of(rank, below, counts_[0])) : alone[rank - below],
               shape_.rank_bits_per_second);
    }
  }

  void add_uplinks() {
    for (std::size_t level = 0; level + 1 < counts_.size(); ++level) {
      for (std::uint32_t i = 0; i < counts_[level]; ++i) {
        links_ += "  - {from: " + switch_name(level, i) +
                  ", to: " + switch_name(level + 1, parent_of(i, counts_[level], counts_[level + 1])) +
                  ", rate: " + service::rate_text(shape_.rank_bits_per_second) + "}\n";
      }
    }
  }

  const ClusterShape shape_;
  const Counts counts_;
  ClusterLayout out_;
  std::string switches_, hosts_, links_;
};

}  // namespace

Result<ClusterLayout> lay_out_cluster(const ClusterShape& shape) {
  const auto bad = [](std::string why) { return fail(Errc::bad_argument, std::move(why)); };
  if (shape.ranks < 1 || shape.ranks > kLocalRanksMax)
    return bad(std::to_string(shape.ranks) + " ranks: allowed are 1 to " + std::to_string(kLocalRanksMax));
  if (shape.aggregators < 1 || shape.aggregators > kLocalAggregatorsMax)
    return bad(std::to_string(shape.aggregators) + " aggregators: allowed are 1 to " +
               std::to_string(kLocalAggregatorsMax));
  if (shape.levels > kLevelsMax)
    return bad(std::to_string(shape.levels) + " levels: allowed are 1 to " + std::to_string(kLevelsMax));
  const std::uint32_t chosen = shape.aggregators >= 3 && shape.ranks >= 4 ? 2 : 1;
  const std::uint32_t levels = shape.levels == 0 ? chosen : shape.levels;
  if (levels > 1 && (shape.aggregators < levels || shape.ranks < levels + 1)) {
    return bad("a tree of " + std::to_string(levels) + " levels needs at least " + std::to_string(levels) +
               " aggregators and " + std::to_string(levels + 1) + " ranks, not " + std::to_string(shape.aggregators) +
               " and " + std::to_string(shape.ranks));
  }
  return Writer(shape, choose_counts(shape, levels)).write();
}

}  // namespace tributary::cli
