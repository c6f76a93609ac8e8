#pragma once
// The content of a `failed` frame: the reason why a lane's tree is broken, and the lost process. The process that was
// connected to the lost process writes the frame. All others pass it on unchanged, so that rank 0 learns which process
// is gone, not which process reported the loss.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tributary {

struct LaneLoss {
  enum class Who : std::uint8_t {
    nobody = 0,  // a drain, a breach of the protocol, a lane that did not form, or an unknown process
    rank = 1,
    aggregator = 2,
  };
  Who who = Who::nobody;
  std::uint32_t rank = 0;  // the lost rank, with Who::rank
  std::string aggregator;  // the lost aggregator's name, with Who::aggregator: at most 63 bytes
  std::string reason;      // the reason for people, UTF-8
  friend bool operator==(const LaneLoss&, const LaneLoss&) = default;
};

/// Returns the payload of a `failed` frame; cuts a reason that is too long.
[[nodiscard]] std::vector<std::byte> encode(const LaneLoss& loss);
/// Reads a payload. It never fails: if it cannot read the payload, it returns Who::nobody and a reason that says so.
[[nodiscard]] LaneLoss decode_lane_loss(std::span<const std::byte> payload);

}  // namespace tributary
