#pragma once
// The lines of a rank's log about the rank for which the others wait. A manager or an aggregator that lies can cause
// one warning in kPause, one line that adds the cause, and one that takes the warning back.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tributary/protocol/late_rank.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

class LateLog {
 public:
  static constexpr std::chrono::seconds kPause{10};  // between two warnings
  static constexpr std::chrono::seconds kAfter{1};   // a wait for so long is told, where no aggregator watches
  /// Gets a line; `late` is false if the line says that the rank is no longer late.
  using Tell = std::function<void(const std::string& line, bool late)>;

  struct Group {
    std::uint32_t members = 0;  // members of the manager's group; it has no late rank with a greater number
    std::uint64_t ranks = 0;    // ranks for which the members act
    std::function<std::string(std::uint32_t)> name_of{};  // returns a member's name for people
  };

  /// `tell`: an empty function: there is no log.
  LateLog(Group group, Tell tell) : group_(std::move(group)), tell_(std::move(tell)) {}

  /// Takes the ranks that are late now, the greatest lag first.
  void take(std::vector<LateRank> late, transport::TimePoint now);
  [[nodiscard]] bool tells() const noexcept { return static_cast<bool>(tell_); }
  /// Returns whether the log names a rank, and has not taken it back.
  [[nodiscard]] bool names() const noexcept { return told_.has_value(); }

 private:
  struct Told {
    std::uint32_t rank;
    std::string name;
    bool cause_known;  // the log has told a cause that says why
  };
  void tell_cause(const LateRank& late);
  const Group group_;
  const Tell tell_;
  std::optional<Told> told_;  // the rank that the log has named, until it is no longer late
  std::optional<transport::TimePoint> told_at_;
};

}  // namespace tributary::client
