#include "client/tuning/policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "client/tuning/table.h"
#include "tributary/protocol/json_reader.h"
#include "tributary/protocol/sum_form.h"

namespace tributary::tuning {
namespace {

using nlohmann::json;

constexpr std::uint64_t kBytesMax = 1ULL << 42;  // the model's last step begins below this size
constexpr double kRatesDiffer = 0.1;             // a part of the greater of two rates
constexpr std::size_t kStepsMax = 4096;          // steps of one collective in a welcome

Algorithm quickest_between_ranks(const Figures& figures, const Call& call) {
  const auto time_of = [&](Algorithm it) { return estimate_ranks(figures, call, it).time_us(); };
  return std::ranges::min(algorithms_of(figures, call.collective), {}, time_of);
}

/// Returns the quickest of all ways, with the quickest algorithm between the ranks. In a group with exact sums only the
/// sums of integers use this algorithm.
Step model_step(const Figures& figures, const Call& call) {
  const Estimate best = estimates(figures, call).front();
  Figures fast = figures;
  fast.exact = false;
  return {.path = best.path, .algorithm = quickest_between_ranks(fast, call), .tree_share = best.tree_share};
}

bool same_choice(const Step& a, const Step& b) noexcept {
  return a.path == b.path && a.algorithm == b.algorithm && a.tree_share == b.tree_share;
}

void append(Steps& steps, std::uint64_t bytes_max, const Step& choice) {
  if (steps.empty() || !same_choice(steps.back(), choice)) steps.push_back(choice);
  steps.back().bytes_max = bytes_max;
}

/// Returns the steps of a choice that depends on the size. It calls `at` for every power of two; if two neighbours
/// differ, it finds the size of the change between them by bisection.
template <class At>
Steps steps_of(At at) {
  Steps steps;
  std::uint64_t low = 0;
  Step here = at(low);
  for (std::uint64_t high = 1; high <= kBytesMax; high *= 2) {
    while (!same_choice(at(high), here)) {
      std::uint64_t same = low, other = high;
      while (other - same > 1) {
        const std::uint64_t middle = same + (other - same) / 2;
        (same_choice(at(middle), here) ? same : other) = middle;
      }
      append(steps, same, here);
      low = other;
      here = at(low);
    }
    low = high;
  }
  append(steps, UINT64_MAX, here);
  return steps;
}

template <class StepsOf>
Policy by_collective(StepsOf steps_of_collective) {
  std::array<Steps, kCollectiveCount> all;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) all[i] = steps_of_collective(static_cast<Collective>(i));
  return Policy(std::move(all));
}

/// Returns the steps of the table's rules for one collective and number of ranks: one step for each size. The model
/// fills the gaps.
Steps table_steps(const Table& table, const Figures& figures, Collective collective, std::uint32_t ranks) {
  Steps steps;
  const Steps model = model_steps(figures, collective, ranks);
  std::uint64_t from = 0;
  bool whole = false;
  for (const Rule& rule : table.rules) {
    if (rule.collective != collective || ranks < rule.ranks_min || ranks > rule.ranks_max) continue;
    if (whole || rule.step.bytes_max < from) continue;  // earlier rules hold for all sizes of this rule
    append(steps, rule.step.bytes_max, rule.step);
    whole = rule.step.bytes_max == UINT64_MAX;
    from = rule.step.bytes_max + 1;
  }
  if (whole) return steps;
  for (const Step& step : model) {
    if (step.bytes_max >= from) append(steps, step.bytes_max, step);
  }
  return steps;
}

json to_json(const Step& step) {
  json one = {step.bytes_max, name(step.path), schedule::name(step.algorithm)};
  if (step.path == Path::split) one.push_back(step.tree_share);
  return one;
}

/// Reads a step of this collective that to_json() has written; nullopt: it is malformed.
std::optional<Step> step_of(const json& one, Collective collective) {
  if (!one.is_array() || one.size() < 3 || one.size() > 4) return std::nullopt;
  if (!one[0].is_number_unsigned() || !one[1].is_string() || !one[2].is_string()) return std::nullopt;
  const auto path = path_from_string(one[1].get<std::string>());
  const auto algorithm = algorithm_from_string(one[2].get<std::string>());
  const auto has = schedule::algorithms(collective);
  if (!path || !algorithm || std::ranges::find(has, *algorithm) == has.end()) return std::nullopt;
  Step step{one[0].get<std::uint64_t>(), *path, *algorithm};
  if ((*path == Path::split) != (one.size() == 4)) return std::nullopt;
  if (*path != Path::split) return step;
  if (!one[3].is_number_unsigned()) return std::nullopt;
  const auto share = one[3].get<std::uint64_t>();
  if (share == 0 || share >= kWholeShare) return std::nullopt;
  step.tree_share = static_cast<std::uint32_t>(share);
  return step;
}

}  // namespace

Policy::Policy() : Policy(trees_always({.one_host = true})) {}

const Step& Policy::at(Collective collective, std::uint64_t bytes) const noexcept {
  const Steps& steps = steps_[static_cast<std::size_t>(collective)];
  return *std::ranges::lower_bound(steps, bytes, {}, &Step::bytes_max);
}

Policy amended(const Policy& policy, const Amendment& amendment) {
  std::array<Steps, kCollectiveCount> all;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) all[i] = policy.steps(static_cast<Collective>(i));
  const Step& step = amendment.step;
  Steps steps;
  for (const Step& old : policy.steps(amendment.collective)) {
    if (!steps.empty() && steps.back().bytes_max == UINT64_MAX) break;
    const std::uint64_t from = steps.empty() ? 0 : steps.back().bytes_max + 1;
    // The old step keeps the sizes below and above the amended sizes.
    if (from <= amendment.above) append(steps, std::min(old.bytes_max, amendment.above), old);
    if (old.bytes_max <= amendment.above) continue;
    if (steps.empty() || steps.back().bytes_max < step.bytes_max) append(steps, step.bytes_max, step);
    if (old.bytes_max > step.bytes_max) append(steps, old.bytes_max, old);
  }
  all[static_cast<std::size_t>(amendment.collective)] = std::move(steps);
  return Policy(std::move(all));
}

Steps model_steps(const Figures& figures, Collective collective, std::uint32_t ranks) {
  return steps_of([&](std::uint64_t bytes) {
    return model_step(figures, {.collective = collective, .ranks = ranks, .bytes = bytes});
  });
}

Figures default_figures(const GroupShape& shape, std::uint32_t cores) noexcept {
  Figures figures;
  figures.exact = shape.exact;
  figures.leaders = shape.leaders;
  figures.staging_gbytes = shape.staging_gbytes;
  if (shape.one_host) figures.link_gbits = 0;
  figures.cores = cores;
  figures.ranks_per_host = shape.ranks_per_host;
  if (shape.one_host || shape.link_rate == 0) return figures;
  // The ranks of a host share its link. A ring connects neighbours, so only one of its edges leaves each host.
  const double link = static_cast<double>(shape.link_rate) / 1e9;
  figures.link_gbits = link / std::max(shape.ranks_per_host, 1U);
  figures.ring_gbits = link;
  return figures;
}

bool differ(const PathRates& a, const PathRates& b) noexcept {
  const auto far = [](std::uint64_t x, std::uint64_t y) {
    const auto [least, most] = std::minmax(x, y);
    return static_cast<double>(least) < static_cast<double>(most) * (1 - kRatesDiffer);
  };
  return far(a.links, b.links) || far(a.trees, b.trees) || far(a.ranks, b.ranks) || far(a.doubling, b.doubling) ||
         far(a.halving, b.halving) || far(a.spread, b.spread);
}

Policy trees_always(const GroupShape& shape) {
  const Figures figures = default_figures(shape, Figures{}.cores);
  return by_collective([&](Collective collective) {
    return steps_of([&](std::uint64_t bytes) {
      Step step = model_step(figures, {.collective = collective, .ranks = shape.ranks, .bytes = bytes});
      step.path = in_network_capable(collective) ? Path::tree : Path::ranks;
      return step;
    });
  });
}

TreeShape shape_of(const GroupDescriptor& trees) noexcept {
  if (trees.empty()) return {.rates = trees.rates};
  const LaneDescriptor& lane = trees.lanes[0];
  std::uint32_t levels = lane.levels, sum = 0, lightest = lane.weight, heaviest = lane.weight, divisor = lane.weight;
  for (const LaneDescriptor& it : trees.lanes) {
    levels = std::max(levels, it.levels);
    lightest = std::min(lightest, it.weight);
    heaviest = std::max(heaviest, it.weight);
    divisor = std::gcd(divisor, it.weight);
    sum += it.weight;
  }
  return {.rates = trees.rates,
          .lanes = static_cast<std::uint32_t>(trees.lanes.size()),
          .lane_cycle = sum / std::max(divisor, 1U),
          .lightest_lane = static_cast<double>(lightest) / static_cast<double>(sum),
          .heaviest_lane = static_cast<double>(heaviest) / static_cast<double>(sum),
          .levels = levels,
          .segment_bytes = lane.segment_bytes};
}

Figures with_trees(Figures figures, const TreeShape& trees) {
  const PathRates& rates = trees.rates;
  if (rates == PathRates{}) return figures;
  // Ranks of one host have no link between them.
  if (figures.link_gbits != 0 && rates.links != 0) {
    figures.link_gbits = static_cast<double>(rates.links) / 1e9;
    figures.ring_gbits = static_cast<double>(rates.ranks) / 1e9;
    figures.doubling_gbits = static_cast<double>(rates.doubling) / 1e9;
    figures.halving_gbits = static_cast<double>(rates.halving) / 1e9;
    figures.spread_gbits = static_cast<double>(rates.spread) / 1e9;
  }
  figures.trees_gbits = static_cast<double>(rates.trees) / 1e9;
  figures.lanes = trees.lanes;
  figures.lane_cycle = trees.lane_cycle;
  figures.lightest_lane = trees.lightest_lane;
  figures.heaviest_lane = trees.heaviest_lane;
  figures.levels = trees.levels;
  if (trees.segment_bytes != 0) figures.segment_bytes = trees.segment_bytes;
  // Where forms travel, the buffers are longer than the values of a segment.
  const auto values =
      static_cast<std::uint32_t>(form_segment_elements(DType::float32, trees.segment_bytes) * sizeof(float));
  if (forms_travel(figures, trees.levels) && values != 0) figures.segment_bytes = values;
  return figures;
}

Policy policy_of(const Table& table, const GroupShape& shape) {
  return policy_of(table, shape, TreeShape{});
}

Policy policy_of(const Table& table, const GroupShape& shape, const TreeShape& trees) {
  Figures figures = table.figures;
  figures.exact = shape.exact;
  figures.leaders = shape.leaders;
  if (shape.staging_gbytes > 0) figures.staging_gbytes = shape.staging_gbytes;
  figures = with_trees(figures, trees);
  return by_collective([&](Collective collective) { return table_steps(table, figures, collective, shape.ranks); });
}

Policy default_policy(const GroupShape& shape, std::uint32_t cores) {
  return default_policy(shape, cores, TreeShape{});
}

Policy default_policy(const GroupShape& shape, std::uint32_t cores, const TreeShape& trees) {
  return model_policy(with_trees(default_figures(shape, cores), trees), shape.ranks);
}

Policy model_policy(const Figures& figures, std::uint32_t ranks) {
  return by_collective([&](Collective collective) { return model_steps(figures, collective, ranks); });
}

std::string encode(const Policy& policy) {
  json all = json::object();
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    json& steps = all[std::string(to_string(collective))] = json::array();
    for (const Step& step : policy.steps(collective)) steps.push_back(to_json(step));
  }
  return all.dump();
}

Result<Policy> decode_policy(const std::string& text) {
  const json all = json_or_discarded(text);
  const auto bad = [](const std::string& what) { return fail(Errc::corrupt, "a malformed tuning: " + what); };
  if (!all.is_object()) return bad("it is no JSON object");
  std::array<Steps, kCollectiveCount> steps;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    const std::string key(to_string(collective));
    const auto found = all.find(key);
    if (found == all.end() || !found->is_array() || found->empty() || found->size() > kStepsMax) return bad(key);
    for (const json& one : *found) {
      const auto step = step_of(one, collective);
      if (!step || (!steps[i].empty() && step->bytes_max <= steps[i].back().bytes_max)) return bad(key);
      steps[i].push_back(*step);
    }
    if (steps[i].back().bytes_max != UINT64_MAX) return bad(key);
  }
  return Policy(std::move(steps));
}

std::string encode(const Amendment& amendment) {
  return json{{"collective", std::string(to_string(amendment.collective))},
              {"above", amendment.above},
              {"step", to_json(amendment.step)}}
      .dump();
}

Result<Amendment> decode_amendment(const std::string& text) {
  const auto bad = [](const std::string& what) { return fail(Errc::corrupt, "a malformed amendment: " + what); };
  const json all = json_or_discarded(text);
  if (!all.is_object()) return bad("it is no JSON object");
  const auto name = all.find("collective");
  if (name == all.end() || !name->is_string()) return bad("collective");
  std::optional<Collective> collective;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    if (to_string(static_cast<Collective>(i)) == name->get_ref<const std::string&>())
      collective = static_cast<Collective>(i);
  }
  if (!collective) return bad("collective");
  const auto above = all.find("above");
  if (above == all.end() || !above->is_number_unsigned()) return bad("above");
  const auto one = all.find("step");
  const auto step = one == all.end() ? std::nullopt : step_of(*one, *collective);
  if (!step) return bad("step");
  if (step->bytes_max <= above->get<std::uint64_t>()) return bad("no size is above its bound and within its step");
  return Amendment{*collective, above->get<std::uint64_t>(), *step};
}

}  // namespace tributary::tuning
