#pragma once
// The share of a group's bytes that each lane carries, so that all lanes end together although their aggregators and
// links are unequal.
#include <cstdint>
#include <vector>

namespace tributary::manager {

/// The load of lanes on the links and aggregators that they use. Seconds are those for one byte of an operation.
struct LaneBurden {
  struct Use {
    std::uint32_t resource = 0;
    double seconds = 0;  // of this resource, if the lane carried all bytes
  };
  std::vector<double> before;           // by resource: the time that others' flows take of it
  std::vector<std::vector<Use>> lanes;  // by lane

  /// Returns the time of the resource that is busy longest, of those that the lanes use; `shares` add up to 1.
  [[nodiscard]] double slowest(const std::vector<double>& shares) const;
};

/// Returns shares for which no lane ends much later than another. Lanes that share what bounds them end together in any
/// case; the search then keeps the best shares that it has seen, which may miss better ones.
[[nodiscard]] std::vector<double> balanced_shares(const LaneBurden& burden);

/// Returns whole numbers up to kLaneWeightMax in about the proportions of `shares`, with as small a sum as comes near:
/// a short cycle of segments ends evenly more often.
[[nodiscard]] std::vector<std::uint32_t> weights_of(const std::vector<double>& shares);

}  // namespace tributary::manager
