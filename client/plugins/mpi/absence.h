#pragma once
// The calls of a communicator that go by MPI because no manager has answered.
#include <algorithm>
#include <cstdint>

namespace tributary::mpi {

/// Says before which calls the ranks agree whether to try again. Only the number of calls decides, so all ranks agree
/// before the same call. The distance doubles from one agreement to the next: after the manager's return about as many
/// calls go by MPI as during its absence, but at most kCallsMax, and a manager that stays away costs next to nothing.
class Absence {
 public:
  static constexpr std::uint32_t kCallsMin = 16;
  static constexpr std::uint32_t kCallsMax = 256;

  [[nodiscard]] bool known() const noexcept { return distance_ != 0; }
  /// Notes that no manager has answered at the agreement before this call.
  void note() noexcept {
    distance_ = known() ? std::min(2 * distance_, kCallsMax) : kCallsMin;
    calls_ = 0;
  }
  /// Counts a call. Returns true if the ranks may agree before it; they may wait for a later call, too.
  [[nodiscard]] bool count() noexcept {
    calls_ = std::min(calls_ + 1, distance_);
    return due();
  }
  [[nodiscard]] bool due() const noexcept { return calls_ == distance_; }

 private:
  std::uint32_t distance_ = 0;  // calls from one agreement to the next; 0: no manager is missing
  std::uint32_t calls_ = 0;
};

}  // namespace tributary::mpi
