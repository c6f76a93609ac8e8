#pragma once
// Makes changes between paths rarer the more of them a class of sizes has seen, for size_class.h.
#include <cstdint>

#include "client/tuning/adaptation.h"

namespace tributary::tuning {

/// Two paths that are equally quick win by chance in turn. After two changes, the next change must save twice as much
/// of the time as usual, and then four times as much. Changes that are long ago do not count.
class Constancy {
 public:
  using TimePoint = Adaptation::TimePoint;

  void path_changed(TimePoint now) noexcept {
    changes_ = changes_at(now) + 1;
    last_ = now;
  }
  /// Returns the factor on the part of the time that a change must save.
  [[nodiscard]] double factor(TimePoint now) const noexcept {
    const std::uint32_t changes = changes_at(now);
    return changes < 2 ? 1 : changes == 2 ? 2 : 4;
  }

 private:
  [[nodiscard]] std::uint32_t changes_at(TimePoint now) const noexcept {
    return now - last_ < Adaptation::kRestLast ? changes_ : 0;
  }

  std::uint32_t changes_ = 0;
  TimePoint last_{};
};

}  // namespace tributary::tuning
