#include "tree-manager/planner/lane_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "tributary/protocol/assert.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::manager {
namespace {

constexpr int kRounds = 48;
constexpr double kEven = 0.005;  // lanes whose times differ by at most this part end together
constexpr std::uint32_t kWeightsSumMax = 256;
constexpr double kNear = 0.02;  // weights are near enough if no lane carries more than this part above its share

/// The time of every resource with these shares.
std::vector<double> times_of(const LaneBurden& burden, const std::vector<double>& shares) {
  std::vector<double> times = burden.before;
  for (std::size_t lane = 0; lane < burden.lanes.size(); ++lane) {
    for (const LaneBurden::Use& use : burden.lanes[lane]) times[use.resource] += shares[lane] * use.seconds;
  }
  return times;
}

double slowest_of(const std::vector<LaneBurden::Use>& lane, const std::vector<double>& times) {
  double slowest = 0;
  for (const LaneBurden::Use& use : lane) slowest = std::max(slowest, times[use.resource]);
  return slowest;
}

/// Returns the greatest excess of a lane over its share, as a part of the share.
double excess_of(const std::vector<std::uint32_t>& weights, const std::vector<double>& shares) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double excess = 0;
  for (std::size_t lane = 0; lane < shares.size(); ++lane)
    excess = std::max(excess, weights[lane] / sum / shares[lane] - 1);
  return excess;
}

}  // namespace

double LaneBurden::slowest(const std::vector<double>& shares) const {
  const std::vector<double> times = times_of(*this, shares);
  double slowest = 0;
  for (const std::vector<Use>& lane : lanes) slowest = std::max(slowest, slowest_of(lane, times));
  return slowest;
}

// In each round a lane that ends late gives a part of its bytes to lanes that end early. Lanes without a common
// resource are balanced after one round. A linear program would be exact for all lanes, but costs more time than a plan
// may take.
std::vector<double> balanced_shares(const LaneBurden& burden) {
  const std::size_t lanes = burden.lanes.size();
  TRIBUTARY_ASSERT(lanes > 0, "{} lanes share the bytes", lanes);
  std::vector<double> shares(lanes, 1.0 / static_cast<double>(lanes)), best = shares, ends(lanes);
  double best_slowest = INFINITY;
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> times = times_of(burden, shares);
    for (std::size_t lane = 0; lane < lanes; ++lane) ends[lane] = slowest_of(burden.lanes[lane], times);
    const auto [earliest, latest] = std::ranges::minmax(ends);
    if (latest < best_slowest) {
      best_slowest = latest;
      best = shares;
    }
    if (earliest <= 0 || latest - earliest <= kEven * latest) break;
    double sum = 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) sum += shares[lane] /= ends[lane];
    for (double& share : shares) share /= sum;
  }
  return best;
}

std::vector<std::uint32_t> weights_of(const std::vector<double>& shares) {
  std::vector<std::uint32_t> best(shares.size(), 1), weights(shares.size());
  double best_excess = excess_of(best, shares);
  for (std::uint32_t sum = static_cast<std::uint32_t>(shares.size()); sum <= kWeightsSumMax; ++sum) {
    if (best_excess <= kNear) break;
    for (std::size_t lane = 0; lane < shares.size(); ++lane) {
      const auto nearest = std::lround(shares[lane] * sum);
      weights[lane] = static_cast<std::uint32_t>(std::clamp<long>(nearest, 1, kLaneWeightMax));
    }
    const double excess = excess_of(weights, shares);
    if (excess >= best_excess) continue;
    best_excess = excess;
    best = weights;
  }
  return best;
}

}  // namespace tributary::manager
