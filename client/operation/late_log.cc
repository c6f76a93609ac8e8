#include "client/operation/late_log.h"

#include <algorithm>

namespace tributary::client {
namespace {

/// Returns a line such as "rank 37 on host node-5 is late by 812 ms, 3 operations behind; 63 others wait".
std::string late_line(const std::string& name, const LateRank& late, std::uint64_t others) {
  std::string line = name + " is late by " + std::to_string(late.lag.count()) + " ms";
  if (late.operations_behind > 0) {
    line += ", " + std::to_string(late.operations_behind) + " operation" + (late.operations_behind == 1 ? "" : "s") +
            " behind";
  }
  if (const std::string_view cause = row_of(late.cause).text; !cause.empty()) line += " (" + std::string(cause) + ")";
  return line + "; " + std::to_string(others) + (others == 1 ? " other waits" : " others wait");
}

/// Returns whether the cause tells more than that nothing is known of the rank.
bool says_why(LateCause cause) {
  return cause != LateCause::unknown && cause != LateCause::silent;
}

}  // namespace

/// Tells the cause if the log could not tell it at first: a rank that did not answer may answer later.
void LateLog::tell_cause(const LateRank& late) {
  if (told_->cause_known || !says_why(late.cause)) return;
  told_->cause_known = true;
  tell_(told_->name + " is still late (" + std::string(row_of(late.cause).text) + ")", true);
}

void LateLog::take(std::vector<LateRank> late, transport::TimePoint now) {
  if (!tell_) return;
  std::erase_if(late, [this](const LateRank& one) { return one.rank >= group_.members; });
  const auto still = std::ranges::find(late, told_ ? told_->rank : UINT32_MAX, &LateRank::rank);
  if (told_ && still != late.end()) return tell_cause(*still);
  if (told_) tell_(told_->name + " is no longer late", false);
  told_.reset();
  if (late.empty() || (told_at_ && now - *told_at_ < kPause)) return;
  const LateRank& latest = late.front();
  told_ = {.rank = latest.rank, .name = group_.name_of(latest.rank), .cause_known = says_why(latest.cause)};
  told_at_ = now;
  tell_(late_line(told_->name, latest, group_.ranks - std::min<std::uint64_t>(group_.ranks, late.size())), true);
}

}  // namespace tributary::client
