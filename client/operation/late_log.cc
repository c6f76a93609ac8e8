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

}  // namespace

void LateLog::take(std::vector<LateRank> late, transport::TimePoint now) {
  if (!tell_) return;
  std::erase_if(late, [this](const LateRank& one) { return one.rank >= group_.members; });
  if (told_ && std::ranges::find(late, told_->rank, &LateRank::rank) == late.end()) {
    tell_(told_->name + " is no longer late", false);
    told_.reset();
  }
  if (told_ || late.empty() || (told_at_ && now - *told_at_ < kPause)) return;
  const LateRank& latest = late.front();
  told_ = {.rank = latest.rank, .name = group_.name_of(latest.rank)};
  told_at_ = now;
  tell_(late_line(told_->name, latest, group_.ranks - std::min<std::uint64_t>(group_.ranks, late.size())), true);
}

}  // namespace tributary::client
