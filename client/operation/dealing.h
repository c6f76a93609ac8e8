#pragma once
// Deals the segments of operations to the lanes of a group. This is a pure function of the call and of the lanes'
// weights, so every rank deals the segments in the same way.
//
// A *cycle* has as many places as the weights add up to, after division by their greatest common divisor. Each lane has
// as many places as its weight, spread evenly. Segment s of operation n takes place (n + s) mod cycle, so many small
// operations together use every lane, too. With equal weights, each lane gets a segment in turn.
#include <cstdint>
#include <span>
#include <vector>

namespace tributary::client {

/// The segments that one lane gets. Each call of first() or after() costs O(1).
class LaneTurns {
 public:
  /// Makes the turns of a group's only lane: it gets every segment.
  LaneTurns() = default;

  /// Returns the lane's first segment of this operation.
  [[nodiscard]] std::uint64_t first(std::uint64_t operation) const noexcept { return wait_at(operation); }
  /// Returns the lane's next segment of this operation after `segment`; another lane may have `segment`.
  [[nodiscard]] std::uint64_t after(std::uint64_t operation, std::uint64_t segment) const noexcept {
    return segment + 1 + wait_at(operation + segment + 1);
  }

 private:
  friend class Dealing;
  [[nodiscard]] std::uint64_t wait_at(std::uint64_t place) const noexcept { return waits_[place % waits_.size()]; }

  std::vector<std::uint16_t> waits_{0};  // by place: number of segments until the lane's next segment
};

class Dealing {
 public:
  /// `weights`: the lanes' weights, by lane, each from 1 to kLaneWeightMax.
  explicit Dealing(std::span<const std::uint32_t> weights);

  [[nodiscard]] std::uint32_t cycle() const noexcept { return static_cast<std::uint32_t>(lanes_.size()); }
  [[nodiscard]] std::uint32_t lane_of(std::uint64_t operation, std::uint64_t segment) const noexcept {
    return lanes_[(operation + segment) % lanes_.size()];
  }
  [[nodiscard]] LaneTurns turns_of(std::uint32_t lane) const;

 private:
  std::vector<std::uint8_t> lanes_;  // the lane of each place in the cycle
};

}  // namespace tributary::client
