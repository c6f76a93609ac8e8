#pragma once
// That rank 0 itself stood still for a while, which the others cannot know of one another: for some time afterwards
// what it hears of ranks that are gone may come of that alone. They wait for rank 0 no longer than for other ranks.
#include <algorithm>
#include <chrono>

#include "tributary/transport/channel.h"

namespace tributary::client {

class OwnAbsence {
 public:
  /// `timeout`: of operations. Nobody takes offence at a twentieth of it.
  explicit OwnAbsence(transport::Duration timeout) noexcept
      : noticed_(timeout / 20), lasts_(std::max<transport::Duration>(timeout / 10, std::chrono::seconds(1))) {}
  /// This process was away for so long until now. Absences that follow one another closely count as one.
  void add(transport::Duration absence, transport::TimePoint now) noexcept {
    time_ = absence + of(now - absence);
    until_ = now;
  }
  /// How long it was away not long ago, if that explains that others are gone; zero otherwise.
  [[nodiscard]] transport::Duration of(transport::TimePoint now) const noexcept {
    return time_ >= noticed_ && now - until_ <= lasts_ ? time_ : transport::Duration::zero();
  }

 private:
  const transport::Duration noticed_, lasts_;
  transport::Duration time_{};
  transport::TimePoint until_{};
};

}  // namespace tributary::client
