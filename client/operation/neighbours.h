#pragma once
// Looks at the processes of other ranks of this host, about which an aggregator or rank 0 asks
// (client/control/witnesses.h).
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "client/operation/late_process.h"
#include "tributary/protocol/rank_troubles.h"

namespace tributary::client {

/// The processes at which a rank looks. One thread uses it.
class Neighbours {
 public:
  using TimePoint = LateProcess::TimePoint;
  static constexpr LateProcess::Duration kPause = std::chrono::milliseconds(100);  // between two looks at one process

  void learn(std::uint32_t rank, pid_t process);
  /// Returns what this rank sees of the rank's process; nullopt if it does not know yet, or is not to look at it. The
  /// first call begins to look. However often others ask, it looks ten times a second at most.
  [[nodiscard]] std::optional<Sighting> sight(std::uint32_t rank, TimePoint now);

 private:
  struct One {
    std::uint32_t rank;
    pid_t process;
    LateProcess look{};
    std::optional<TimePoint> looked_at{};
  };
  std::vector<One> all_;
};

}  // namespace tributary::client
