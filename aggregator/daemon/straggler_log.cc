#include "aggregator/daemon/straggler_log.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "tributary/protocol/assert.h"

namespace tributary::aggregator {
namespace {

constexpr std::chrono::seconds kNewsPause{1};

}  // namespace

std::string text_of(const StragglerNotice& notice) {
  const std::string of = fmt::format("{} of job '{}' (group {})", notice.who, notice.job, notice.group);
  if (!notice.late) return of + " is no longer late";
  const std::chrono::duration<double, std::milli> lag = notice.lag;
  const std::string_view cause = row_of(notice.cause).text;
  return fmt::format(
      "{} is late: {} wait for it for {:.0f} % of the time; its contributions come {:.1f} ms after the first{}{}", of,
      notice.others == 1 ? "1 other" : fmt::format("{} others", notice.others), 100 * notice.part, lag.count(),
      cause.empty() ? "" : "; ", cause);
}

void StragglerLog::on_news(std::function<void()> news) {
  const std::lock_guard lock(mutex_);
  news_ = std::move(news);
}

void StragglerLog::note(const StragglerNotice& notice) {
  const std::lock_guard lock(mutex_);
  if (!log(notice) || !news_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - news_at_ < kNewsPause) return;  // the next renewal tells the manager
  news_at_ = now;
  news_();
}

bool StragglerLog::log(const StragglerNotice& notice) {
  const auto key = std::pair(notice.group, notice.who);
  if (notice.late) {
    if (++late_[key] > 1) return false;
    spdlog::warn("{}", text_of(notice));
    return true;
  }
  const auto found = late_.find(key);
  TRIBUTARY_ASSERT(found != late_.end(), "{} of group {} was not late, so it cannot come back", notice.who,
                   notice.group);
  if (--found->second > 0) return false;
  late_.erase(found);
  spdlog::info("{}", text_of(notice));
  return true;
}

}  // namespace tributary::aggregator
