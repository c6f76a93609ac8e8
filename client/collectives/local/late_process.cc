#include "client/collectives/local/late_process.h"

#include <fstream>
#include <string>

#include "client/operation/own_troubles.h"
#include "tributary/protocol/rank_troubles.h"

namespace tributary::client::local {
namespace {

constexpr LateProcess::Duration kLookMin = std::chrono::milliseconds(200), kLookMax = std::chrono::seconds(5);

/// Returns the folder of the kernel's files about the process; empty if it has ended, or is not visible here.
std::string folder_of(int descriptor) {
  std::ifstream information("/proc/self/fdinfo/" + std::to_string(descriptor));
  for (std::string word; information >> word;) {
    long pid = 0;
    if (word != "Pid:") continue;
    return information >> pid && pid > 0 ? "/proc/" + std::to_string(pid) : std::string();
  }
  return {};
}

/// Returns how long the main thread of the process has waited for a processor since it began.
std::optional<LateProcess::Duration> waited_of(int descriptor) {
  const std::string folder = folder_of(descriptor);
  return folder.empty() ? std::nullopt : processor_wait(folder + "/schedstat");
}

/// Returns whether a signal or a debugger has stopped the process.
bool stopped(int descriptor) {
  const std::string folder = folder_of(descriptor);
  if (folder.empty()) return false;
  std::string line;
  std::getline(std::ifstream(folder + "/stat"), line);  // "pid (name) state ..."; the name may have brackets
  const std::size_t name_end = line.rfind(") ");
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'T' || state == 't';
}

}  // namespace

void LateProcess::look(std::uint32_t rank, int descriptor, TimePoint now) {
  if (seen_ && seen_->rank == rank && now - seen_->at <= kLookMax) return;
  seen_ = {.rank = rank, .at = now, .waited = waited_of(descriptor)};
}

LateCause LateProcess::cause(std::uint32_t rank, int descriptor, TimePoint now, LateCause otherwise) const {
  if (stopped(descriptor)) return LateCause::silent;
  if (!seen_ || seen_->rank != rank || !seen_->waited || now - seen_->at < kLookMin) return otherwise;
  const auto waited = waited_of(descriptor);
  if (!waited) return otherwise;
  const Duration least = (now - seen_->at) * RankTroubles::kProcessorWaitMin / 100;
  return *waited - *seen_->waited >= least ? LateCause::no_cpu : otherwise;
}

}  // namespace tributary::client::local
