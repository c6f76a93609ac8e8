#include "client/cli/budget/budget.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

struct Scale {
  std::string_view name;
  double factor;
};
constexpr std::array kScales{Scale{"", 1},    Scale{"k", 1e3}, Scale{"M", 1e6},
                             Scale{"G", 1e9}, Scale{"B", 1e9}, Scale{"T", 1e12}};

constexpr double kRounding = 1e-12;  // so small a difference is a rounding error of a double

std::uint64_t count_of(double value) {
  return static_cast<std::uint64_t>(std::ceil(value * (1 - kRounding)));
}

bool is_within(double value, double bound) {
  return value <= bound * (1 + kRounding);
}

double bytes_per_second(std::uint64_t bits_per_second) {
  return static_cast<double>(bits_per_second) / 8;
}

/// Returns the number of aggregators whose links carry this part of the bytes that all ranks send.
std::uint64_t aggregators_for(const BudgetInput& input, double coverage) {
  return count_of(coverage * static_cast<double>(input.rank_rate) * input.ranks /
                  static_cast<double>(input.aggregator_rate));
}

/// Returns 1, 2, 4 and so on, up to the number of ranks or to the number of aggregators that carries as much as all
/// ranks send. It also returns the user's own number.
std::vector<std::uint64_t> aggregator_counts(const BudgetInput& input, std::uint64_t enough) {
  const std::uint64_t last = std::min<std::uint64_t>(input.ranks, enough);
  std::vector<std::uint64_t> counts{last};
  for (std::uint64_t count = 1; count < last; count *= 2) counts.push_back(count);
  if (input.aggregators != 0) counts.push_back(input.aggregators);
  std::ranges::sort(counts);
  const auto repeated = std::ranges::unique(counts);
  counts.erase(repeated.begin(), repeated.end());
  return counts;
}

std::vector<Purchase> purchases_of(const BudgetInput& input, const Budget& budget, double tree_seconds) {
  const double ratio = ring_ratio(input.ranks);
  std::vector<Purchase> purchases;
  std::uint64_t count_before = 0;
  double seconds_before = budget.ring.seconds;
  for (const std::uint64_t count : aggregator_counts(input, budget.aggregators_enough)) {
    const double coverage = coverage_of(input, count);
    const double seconds = tree_seconds * split_ratio(ratio, coverage);
    purchases.push_back({.aggregators = count,
                         .coverage = coverage,
                         .tree_share = tree_share_of(ratio, coverage),
                         .seconds = seconds,
                         .gain = budget.ring.seconds / seconds,
                         .seconds_saved_each = (seconds_before - seconds) / static_cast<double>(count - count_before)});
    count_before = count;
    seconds_before = seconds;
  }
  return purchases;
}

/// Solves split_ratio() for the number of aggregators. With two ranks, aggregators never help.
std::optional<std::uint64_t> aggregators_needed(const BudgetInput& input, double tree_seconds, double seconds_max) {
  const double ratio = ring_ratio(input.ranks);
  if (is_within(tree_seconds * ratio, seconds_max)) return 0;
  if (!is_within(tree_seconds, seconds_max)) return std::nullopt;
  return aggregators_for(input, (ratio * tree_seconds / seconds_max - 1) / (ratio - 1));
}

StepForecast verdict_of(const BudgetInput& input, const Budget& budget, double tree_seconds, double step_seconds) {
  const double computing = std::chrono::duration<double>(input.computing).count();
  const double hidden_max = input.overlap * computing;
  const auto step_with = [&](const WayCost& way) {
    const double seconds = computing + std::max(0.0, way.seconds - hidden_max);
    return StepTime{.seconds = seconds, .met = is_within(seconds, step_seconds)};
  };
  StepForecast verdict{.communication_seconds_max = step_seconds - computing + hidden_max,
                       .ring = step_with(budget.ring),
                       .tree = step_with(budget.tree),
                       .split = step_with(budget.split)};
  const double seconds_max = verdict.communication_seconds_max;
  if (step_seconds < computing || seconds_max <= 0) return verdict;
  verdict.aggregators_needed = aggregators_needed(input, tree_seconds, seconds_max);
  const double rate = static_cast<double>(input.rank_rate);
  verdict.ring_rate_needed = rate * budget.ring.seconds / seconds_max;
  verdict.tree_rate_needed = rate * tree_seconds / seconds_max;
  return verdict;
}

}  // namespace

Result<std::uint64_t> parse_parameters(std::string_view text) {
  const auto wrong = [](const char* why) { return fail(Errc::bad_argument, std::string("it ") + why); };
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || !std::isfinite(number)) return wrong("does not begin with a number");
  const auto scale = std::ranges::find(kScales, std::string_view(rest, end), &Scale::name);
  if (scale == kScales.end()) return wrong("ends with an unknown unit");
  const double value = std::round(number * scale->factor);
  if (value < 1 || value > static_cast<double>(kParametersMax)) return wrong("is out of bounds");
  if (std::abs(number * scale->factor - value) > value * kRounding) return wrong("is no whole number");
  return static_cast<std::uint64_t>(value);
}

double ring_ratio(std::uint32_t ranks) noexcept {
  return 2.0 * (ranks - 1) / ranks;
}

double coverage_of(const BudgetInput& input, std::uint64_t aggregators) noexcept {
  const double aggregate = static_cast<double>(aggregators) * static_cast<double>(input.aggregator_rate);
  return std::min(1.0, aggregate / (static_cast<double>(input.rank_rate) * input.ranks));
}

double tree_share_of(double ratio, double coverage) noexcept {
  return coverage * ratio / (1 + coverage * (ratio - 1));
}

double split_ratio(double ratio, double coverage) noexcept {
  return ratio / (1 + coverage * (ratio - 1));
}

Budget budget_of(const BudgetInput& input) {
  TRIBUTARY_ASSERT(input.ranks >= 2 && input.parameters >= 1 && input.parameters <= kParametersMax,
                   "{} ranks, {} parameters", input.ranks, input.parameters);
  TRIBUTARY_ASSERT(input.rank_rate >= kBudgetRateMin && input.aggregator_rate >= kBudgetRateMin,
                   "links of {} and {} bit/s", input.rank_rate, input.aggregator_rate);
  Budget budget;
  budget.bytes = static_cast<double>(input.parameters) * static_cast<double>(size_of(input.dtype));
  budget.aggregators_enough = aggregators_for(input, 1);
  budget.aggregators = input.aggregators == 0 ? budget.aggregators_enough : input.aggregators;
  budget.coverage = coverage_of(input, budget.aggregators);
  const double ratio = ring_ratio(input.ranks);
  budget.tree_share = tree_share_of(ratio, budget.coverage);
  const double tree_seconds = budget.bytes / bytes_per_second(input.rank_rate);  // time with enough aggregators
  const double split = split_ratio(ratio, budget.coverage);
  budget.ring = {.bytes = ratio * budget.bytes, .seconds = ratio * tree_seconds};
  budget.tree = {.bytes = budget.bytes, .seconds = tree_seconds / budget.coverage};
  budget.split = {.bytes = split * budget.bytes, .seconds = split * tree_seconds};
  budget.purchases = purchases_of(input, budget, tree_seconds);
  if (input.step) {
    const double step_seconds = std::chrono::duration<double>(*input.step).count();
    budget.verdict = verdict_of(input, budget, tree_seconds, step_seconds);
  }
  return budget;
}

}  // namespace tributary::cli
