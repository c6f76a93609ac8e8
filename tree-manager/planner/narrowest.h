#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tree-manager/planner/sites.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::manager {

/// The narrowest of the resources that one path uses.
class Narrowest {
 public:
  void use(std::uint64_t load, std::uint64_t bits_per_second) {
    if (bits_per_second == 0) known_ = false;
    seconds_ = std::max(seconds_, seconds_per_byte(load, bits_per_second));
  }
  /// Returns bits per second; 0 if no resource is used, or the rate of a used resource is not known.
  [[nodiscard]] std::uint64_t rate() const {
    if (!known_ || seconds_ <= 0) return 0;
    return static_cast<std::uint64_t>(std::llround(std::min(8 / seconds_, static_cast<double>(kPathRateMax))));
  }

 private:
  double seconds_ = 0;
  bool known_ = true;
};

}  // namespace tributary::manager
