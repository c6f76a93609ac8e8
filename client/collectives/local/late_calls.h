#pragma once
// Remembers for which rank this rank waited long in a call: one that is late in two calls, one soon after the other, is
// named earlier.
#include <chrono>
#include <cstdint>
#include <optional>

namespace tributary::client::local {

/// One thread uses it.
class LateCalls {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kAgainWithin{3};

  /// Notes that the call with this number waits long for the rank.
  void waits(std::uint32_t rank, std::uint64_t number, TimePoint now) noexcept {
    const bool known = last_ && last_->rank == rank;
    if (!known || last_->number != number) again_ = known && now - last_->at <= kAgainWithin;
    last_ = {.rank = rank, .number = number, .at = now};
  }
  /// Returns whether the call before that waited long did so shortly before, and for the same rank.
  [[nodiscard]] bool again() const noexcept { return again_; }

 private:
  struct Last {
    std::uint32_t rank;
    std::uint64_t number;
    TimePoint at;
  };
  std::optional<Last> last_;
  bool again_ = false;
};

}  // namespace tributary::client::local
