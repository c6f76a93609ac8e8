#include "client/collectives/local/late_watch.h"

namespace tributary::client::local {

void LateWatch::end_of_name(bool ok) {
  const bool late_again = said_at_ && calls_.again();
  if (ok && !late_again) log_.take({}, {});
}

bool LateWatch::due(const Wait& wait, TimePoint now) const noexcept {
  if (!log_.tells() || wait.since > wait.absences.ago(kLookAfter, now)) return false;
  if (said_at_ && now - *said_at_ < kSayPause) return false;
  return !looked_at_ || now - *looked_at_ >= kLookPause;
}

void LateWatch::look(const Wait& wait, const std::function<std::optional<Late>()>& latest, TimePoint now) {
  if (!due(wait, now)) return;
  const auto late = latest();
  if (!late) return;
  looked_at_ = now;
  const std::string folder = folder_of_(late->rank);
  process_.look(late->rank, folder, now);
  if (wait.since > wait.absences.ago(kAgainAfter, now)) return;
  calls_.waits(late->rank, wait.call, now);
  const bool again = calls_.again();
  if (!again && wait.since > wait.absences.ago(LateLog::kAfter, now))
    return;  // only a look at the process, before the time is over
  LateCause cause = late->has_called ? LateCause::silent : again ? LateCause::late_call : LateCause::not_called;
  cause = process_.cause(late->rank, folder, now, cause);
  said_at_ = now;
  log_.take({{.rank = late->rank,
              .lag = std::chrono::duration_cast<std::chrono::milliseconds>(now - wait.since),
              .cause = cause}},
            now);
}

}  // namespace tributary::client::local
