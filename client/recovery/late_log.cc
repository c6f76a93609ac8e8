#include "client/recovery/late_log.h"

#include <algorithm>

#include "client/operation/late_line.h"

namespace tributary::client {

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
