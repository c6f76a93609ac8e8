#pragma once
// Deals the segments of operations to the lanes of a group: a pure function of the call and of the lanes' weights, so
// that every rank deals alike.
//
// A *cycle* has as many places as the weights add up to, after division by their greatest common divisor. Each lane has
// as many places as its weight, spread evenly. Segment s of operation n takes place (n + s) mod cycle, so a stream of
// small operations uses every lane, too. Equal weights deal in turn.
#include <cstdint>
#include <span>
#include <vector>

namespace tributary::client {

/// The segments that one lane gets. Each question costs O(1).
class LaneTurns {
 public:
  /// The only lane of a group: it gets every segment.
  LaneTurns() = default;

  /// Returns the lane's first segment of this operation.
  [[nodiscard]] std::uint64_t first(std::uint64_t operation) const noexcept { return wait_at(operation); }
  /// Returns the lane's next segment of this operation after `segment`, which may be another lane's.
  [[nodiscard]] std::uint64_t after(std::uint64_t operation, std::uint64_t segment) const noexcept {
    return segment + 1 + wait_at(operation + segment + 1);
  }

 private:
  friend class Dealing;
  [[nodiscard]] std::uint64_t wait_at(std::uint64_t place) const noexcept { return waits_[place % waits_.size()]; }

  std::vector<std::uint16_t> waits_{0};  // by place of the cycle: how many segments pass until the lane's next
};

class Dealing {
 public:
  /// `weights`: by lane, each from 1 to kLaneWeightMax.
  explicit Dealing(std::span<const std::uint32_t> weights);

  [[nodiscard]] std::uint32_t cycle() const noexcept { return static_cast<std::uint32_t>(lanes_.size()); }
  [[nodiscard]] std::uint32_t lane_of(std::uint64_t operation, std::uint64_t segment) const noexcept {
    return lanes_[(operation + segment) % lanes_.size()];
  }
  [[nodiscard]] LaneTurns turns_of(std::uint32_t lane) const;

 private:
  std::vector<std::uint8_t> lanes_;  // by place of the cycle
};

}  // namespace tributary::client
