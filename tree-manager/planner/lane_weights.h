#pragma once
// The share of a group's bytes for each lane, so that all lanes end together although their aggregators and links are
// unequal.
#include <cstdint>
#include <vector>

namespace tributary::manager {

/// The load of lanes on the links and aggregators that they use. Times are seconds for one byte of an operation.
struct LaneBurden {
  struct Use {
    std::uint32_t resource = 0;
    double seconds = 0;  // time of this resource, if the lane carried all bytes
  };
  std::vector<double> before;           // index: resource; the time that other groups' flows take
  std::vector<std::vector<Use>> lanes;  // index: lane

  /// Returns the time of the resource that is busy longest among the lanes' resources; the sum of `shares` is 1.
  [[nodiscard]] double slowest(const std::vector<double>& shares) const;
};

/// Returns shares with which no lane ends much later than another. Lanes that share their slowest resource end together
/// in any case. The search then keeps the best shares that it has seen, and may miss better ones.
[[nodiscard]] std::vector<double> balanced_shares(const LaneBurden& burden);

/// Returns whole numbers up to kLaneWeightMax in about the proportions of `shares`. It chooses a small sum that is near
/// enough: with a short cycle of segments, operations more often end at a whole cycle.
[[nodiscard]] std::vector<std::uint32_t> weights_of(const std::vector<double>& shares);

}  // namespace tributary::manager
