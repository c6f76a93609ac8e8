#include "client/collectives/local/late_process.h"

#include <fstream>
#include <string>

#include "client/operation/own_troubles.h"
#include "tributary/protocol/rank_troubles.h"

namespace tributary::client::local {
namespace {

constexpr LateProcess::Duration kLookMin = std::chrono::milliseconds(200), kLookMax = std::chrono::seconds(5);

/// Returns how long the main thread of the process has waited for a processor since it began.
std::optional<LateProcess::Duration> waited_of(int descriptor) {
  std::ifstream information("/proc/self/fdinfo/" + std::to_string(descriptor));
  for (std::string word; information >> word;) {
    long pid = 0;
    if (word != "Pid:") continue;
    if (!(information >> pid) || pid <= 0) return std::nullopt;  // the process has ended, or is not visible here
    return processor_wait("/proc/" + std::to_string(pid) + "/schedstat");
  }
  return std::nullopt;
}

}  // namespace

void LateProcess::look(std::uint32_t rank, int descriptor, TimePoint now) {
  if (seen_ && seen_->rank == rank && now - seen_->at <= kLookMax) return;
  seen_ = {.rank = rank, .at = now, .waited = waited_of(descriptor)};
}

LateCause LateProcess::cause(std::uint32_t rank, int descriptor, TimePoint now, LateCause otherwise) const {
  if (!seen_ || seen_->rank != rank || !seen_->waited || now - seen_->at < kLookMin) return otherwise;
  const auto waited = waited_of(descriptor);
  if (!waited) return otherwise;
  const Duration least = (now - seen_->at) * RankTroubles::kProcessorWaitMin / 100;
  return *waited - *seen_->waited >= least ? LateCause::no_cpu : otherwise;
}

}  // namespace tributary::client::local
