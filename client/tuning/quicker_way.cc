#include "client/tuning/quicker_way.h"

#include <algorithm>
#include <vector>

namespace tributary::tuning {
namespace {

/// Returns the quickest estimate between the ranks, or by trees; nullopt: the collective has none of these.
std::optional<Estimate> best_of(const Figures& figures, const Call& call, bool in_network) {
  const std::vector<Estimate> all = estimates(figures, call);
  const auto found =
      std::ranges::find_if(all, [&](const Estimate& it) { return (it.path != Path::ranks) == in_network; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

/// Returns the figures for trees that are no narrower than the links of the ranks.
Figures with_wide_trees(Figures figures) {
  figures.trees_gbits = 0;
  figures.lanes = figures.lane_cycle = 1;
  figures.lightest_lane = figures.heaviest_lane = 0;
  figures.levels = 0;
  return figures;
}

}  // namespace

const char* text_of(Quicker way) noexcept {
  switch (way) {
    case Quicker::between_ranks:
      return "between the ranks";
    case Quicker::present_trees:
      return "over the trees in use";
    case Quicker::wide_trees:
      return "over aggregators with the link rate of the ranks";
  }
  return "";
}

std::optional<QuickerWay> quicker_way(const Figures& figures, const PresentWay& present) {
  if (figures.link_gbits == 0) return std::nullopt;
  const auto now = best_of(figures, present.call, present.in_network);
  if (!now || now->transfer_us < now->latency_us) return std::nullopt;
  std::optional<QuickerWay> best;
  const auto consider = [&](Quicker way, const std::optional<Estimate>& estimate) {
    if (!estimate) return;
    const double ratio = estimate->time_us() / now->time_us();
    if (ratio < kWorthSaying && (!best || ratio < best->ratio)) best = QuickerWay{way, ratio};
  };
  if (present.other_path_untried && present.in_network)
    consider(Quicker::between_ranks, best_of(figures, present.call, false));
  if (present.other_path_untried && present.trees_in_use && !present.in_network)
    consider(Quicker::present_trees, best_of(figures, present.call, true));
  if (!present.trees_in_use || (figures.trees_gbits > 0 && figures.trees_gbits < figures.link_gbits))
    consider(Quicker::wide_trees, best_of(with_wide_trees(figures), present.call, true));
  return best;
}

}  // namespace tributary::tuning
