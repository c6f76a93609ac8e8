#include "client/tuning/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tributary::tuning {
namespace {

constexpr std::uint64_t kSmallMax = 4 << 10;
constexpr std::uint64_t kLargeMin = 1 << 20;
constexpr double kLinkBound = 1.5;  // an operation slower than its processors by this factor is limited by the link

struct Quickest {
  const MeasuredTime* tree = nullptr;
  const MeasuredTime* ranks = nullptr;
};

std::map<std::uint64_t, Quickest> by_size(const std::vector<MeasuredTime>& measured) {
  std::map<std::uint64_t, Quickest> sizes;
  for (const MeasuredTime& time : measured) {
    Quickest& here = sizes[time.bytes];
    const MeasuredTime*& best = time.path == Path::tree ? here.tree : here.ranks;
    if (best == nullptr || time.time_us < best->time_us) best = &time;
  }
  return sizes;
}

Call call_of(const MeasuredTime& time) {
  return {.collective = time.collective, .ranks = time.ranks, .bytes = time.bytes};
}

double model_us(const Figures& figures, const MeasuredTime& time) {
  if (time.path == Path::tree) return estimate_tree(figures, call_of(time)).time_us();
  return estimate_ranks(figures, call_of(time), time.algorithm).time_us();
}

/// Returns the factor by which to correct a figure; it is limited so that the figure stays within a table's bounds.
double ratio(double measured, double model) {
  return model > 0 ? std::clamp(measured / model, 0.01, 100.0) : 1;
}

void calibrate_rates(Figures& figures, const MeasuredTime& time) {
  Figures no_link = figures;
  no_link.link_gbits = 0;
  const double by_processors = model_us(no_link, time);
  if (time.time_us <= kLinkBound * by_processors) {
    figures.link_gbits = 0;
    figures.core_gbytes = std::clamp(figures.core_gbytes * ratio(by_processors, time.time_us), 0.001, 1e4);
    return;
  }
  Figures slow = figures;
  slow.link_gbits = 0.001;
  const Estimate at_slow = estimate_ranks(slow, call_of(time), time.algorithm);
  const double transfer_us = std::max(time.time_us - at_slow.latency_us, time.time_us / 2);
  figures.link_gbits = std::clamp(slow.link_gbits * at_slow.transfer_us / transfer_us, 1e-6, 1e5);
}

}  // namespace

std::vector<Rule> rules_of(const std::vector<MeasuredTime>& measured) {
  std::vector<Rule> rules;
  std::uint64_t before = 0;
  for (const auto& [bytes, quickest] : by_size(measured)) {
    const MeasuredTime* ranks = quickest.ranks;
    if (ranks == nullptr) continue;  // no algorithm between the ranks was measured
    const bool tree = quickest.tree != nullptr && quickest.tree->time_us < ranks->time_us;
    const Step step{UINT64_MAX, tree ? Path::tree : Path::ranks, ranks->algorithm};
    if (rules.empty() || rules.back().step.path != step.path || rules.back().step.algorithm != step.algorithm) {
      if (!rules.empty()) {
        const double half_way = std::sqrt(static_cast<double>(before) * static_cast<double>(bytes));
        rules.back().step.bytes_max = std::clamp(static_cast<std::uint64_t>(half_way), before, bytes - 1);
      }
      rules.push_back({ranks->collective, ranks->ranks, ranks->ranks, step});
    }
    before = bytes;
  }
  return rules;
}

Figures calibrated(Figures figures, const std::vector<MeasuredTime>& measured) {
  const auto sizes = by_size(measured);
  if (sizes.empty()) return figures;
  const auto& [small, at_small] = *sizes.begin();
  const auto& [large, at_large] = *sizes.rbegin();
  if (large >= kLargeMin && at_large.ranks != nullptr) calibrate_rates(figures, *at_large.ranks);
  if (small > kSmallMax) return figures;
  if (at_small.ranks != nullptr) {
    const double by = ratio(at_small.ranks->time_us, model_us(figures, *at_small.ranks));
    figures.message_us = std::clamp(figures.message_us * by, 0.001, 1e6);
  }
  if (at_small.tree != nullptr) {
    const double by = ratio(at_small.tree->time_us, model_us(figures, *at_small.tree));
    figures.hop_us = std::clamp(figures.hop_us * by, 0.001, 1e6);
    figures.aggregator_us = std::clamp(figures.aggregator_us * by, 0.0, 1e6);
  }
  return figures;
}

void add_measured(Table& table, const std::vector<MeasuredTime>& measured, const Figures& start) {
  if (measured.empty()) return;
  const Collective collective = measured.front().collective;
  const std::uint32_t ranks = measured.front().ranks;
  std::erase_if(table.measured, [&](const MeasuredTime& m) { return m.collective == collective && m.ranks == ranks; });
  std::erase_if(table.rules, [&](const Rule& r) {
    return r.collective == collective && r.ranks_min == ranks && r.ranks_max == ranks;
  });
  table.measured.insert(table.measured.end(), measured.begin(), measured.end());
  // Put the new rules first: an old rule for a larger range of sizes must not hide them.
  const std::vector<Rule> rules = rules_of(measured);
  table.rules.insert(table.rules.begin(), rules.begin(), rules.end());
  table.figures = calibrated(start, measured);
}

}  // namespace tributary::tuning
