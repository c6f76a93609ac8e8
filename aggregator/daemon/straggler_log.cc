#include "aggregator/daemon/straggler_log.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "tributary/protocol/assert.h"

namespace tributary::aggregator {

std::string text_of(const StragglerNotice& notice) {
  const std::string of = fmt::format("{} of job '{}' (group {})", notice.who, notice.job, notice.group);
  if (!notice.late) return of + " is no longer late";
  const std::chrono::duration<double, std::milli> lag = notice.lag;
  return fmt::format(
      "{} is late: {} wait for it for {:.0f} % of the time; its contributions come {:.1f} ms after the first", of,
      notice.others == 1 ? "1 other" : fmt::format("{} others", notice.others), 100 * notice.part, lag.count());
}

void StragglerLog::note(const StragglerNotice& notice) {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(notice.group, notice.who);
  if (notice.late) {
    if (++late_[key] == 1) spdlog::warn("{}", text_of(notice));
    return;
  }
  const auto found = late_.find(key);
  TRIBUTARY_ASSERT(found != late_.end(), "{} of group {} was not late, so it cannot come back", notice.who,
                   notice.group);
  if (--found->second > 0) return;
  late_.erase(found);
  spdlog::info("{}", text_of(notice));
}

}  // namespace tributary::aggregator
