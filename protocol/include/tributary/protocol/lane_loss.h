#pragma once
// The content of a failed frame: why a lane's tree is broken, and who was lost with it, as the one saw it who was
// connected to the lost one. Everyone else passes it on as it came, so that rank 0 hears who is gone and not who told
// it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tributary {

struct LaneLoss {
  enum class Who : std::uint8_t {
    nobody = 0,  // a drain, a breach, a lane that did not form: or who it was is not known
    rank = 1,
    aggregator = 2,
  };
  Who who = Who::nobody;
  std::uint32_t rank = 0;  // of Who::rank
  std::string aggregator;  // of Who::aggregator: its name, at most 63 bytes
  std::string reason;      // for people, UTF-8
  friend bool operator==(const LaneLoss&, const LaneLoss&) = default;
};

/// The payload of a failed frame; a reason that is too long is cut.
[[nodiscard]] std::vector<std::byte> encode(const LaneLoss& loss);
/// Never fails: what cannot be read names nobody, and says so.
[[nodiscard]] LaneLoss decode_lane_loss(std::span<const std::byte> payload);

}  // namespace tributary
