#include "client/collectives/local/late_process.h"

#include <fstream>
#include <string>

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

/// Returns the times of the main thread of the process; nullopt if the kernel does not count them.
std::optional<LateProcess::Times> times_of(const std::string& folder) {
  std::ifstream counts(folder + "/schedstat");  // "ran waited slices", in nanoseconds
  std::int64_t ran = 0, waited = 0;
  if (folder.empty() || !(counts >> ran >> waited)) return std::nullopt;
  return LateProcess::Times{.ran = LateProcess::Duration(ran), .waited = LateProcess::Duration(waited)};
}

/// Returns the state of the process as a letter of the kernel; a space if it is not known.
char state_of(const std::string& folder) {
  std::string line;
  std::ifstream stat(folder + "/stat");  // "pid (name) state ..."; the name may have brackets
  std::getline(stat, line);
  const std::size_t name_end = line.rfind(") ");
  return folder.empty() || name_end == std::string::npos || name_end + 2 >= line.size() ? ' ' : line[name_end + 2];
}

}  // namespace

void LateProcess::look(std::uint32_t rank, int descriptor, TimePoint now) {
  if (seen_ && seen_->rank == rank && now - seen_->at <= kLookMax) return;
  seen_ = {.rank = rank, .at = now, .times = times_of(folder_of(descriptor))};
}

LateCause LateProcess::cause(std::uint32_t rank, int descriptor, TimePoint now, LateCause otherwise) const {
  const std::string folder = folder_of(descriptor);
  const char state = state_of(folder);
  if (state == 'T' || state == 't') return LateCause::silent;  // stopped by a signal or a debugger
  if (!seen_ || seen_->rank != rank || !seen_->times || now - seen_->at < kLookMin) return otherwise;
  const auto times = times_of(folder);
  if (!times) return otherwise;
  // The kernel counts a wait when it has ended. A thread that is ready to run, and has hardly run, waits still.
  const Duration least = (now - seen_->at) * RankTroubles::kProcessorWaitMin / 100;
  const bool has_waited = times->waited - seen_->times->waited >= least;
  const bool waits = state == 'R' && (now - seen_->at) - (times->ran - seen_->times->ran) >= least;
  return has_waited || waits ? LateCause::no_cpu : otherwise;
}

}  // namespace tributary::client::local
