#include "client/operation/late_process.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace tributary::client {
namespace {

/// Returns the state of a process or thread as a letter of the kernel; a space if it is not known.
char state_of(const std::string& folder) {
  std::string line;
  std::ifstream stat(folder + "/stat");  // "pid (name) state ..."; the name may have brackets
  std::getline(stat, line);
  const std::size_t name_end = line.rfind(") ");
  return folder.empty() || name_end == std::string::npos || name_end + 2 >= line.size() ? ' ' : line[name_end + 2];
}

/// Returns the times of a thread; nullopt if the kernel does not count them.
std::optional<LateProcess::Times> times_of(const std::string& folder) {
  std::ifstream counts(folder + "/schedstat");  // "ran waited slices", in nanoseconds
  std::int64_t ran = 0, waited = 0;
  if (!(counts >> ran >> waited)) return std::nullopt;
  return LateProcess::Times{
      .ran = LateProcess::Duration(ran), .waited = LateProcess::Duration(waited), .ready = state_of(folder) == 'R'};
}

/// Returns the time for which a thread waited for a processor, of `time`. The kernel counts a wait when it has ended: a
/// thread that is ready to run, and has hardly run, waits still.
LateProcess::Duration wait_between(const LateProcess::Times& before, const LateProcess::Times& after,
                                   LateProcess::Duration time) {
  const LateProcess::Duration ended = after.waited - before.waited;
  const LateProcess::Duration open =
      before.ready && after.ready ? time - (after.ran - before.ran) : LateProcess::Duration::zero();
  return std::clamp(std::max(ended, open), LateProcess::Duration::zero(), time);
}

}  // namespace

std::string folder_of_descriptor(int descriptor) {
  std::ifstream information("/proc/self/fdinfo/" + std::to_string(descriptor));
  for (std::string word; information >> word;) {
    long pid = 0;
    if (word != "Pid:") continue;
    return information >> pid && pid > 0 ? "/proc/" + std::to_string(pid) : std::string();
  }
  return {};
}

std::string folder_of_process(pid_t process) {
  return "/proc/" + std::to_string(process);
}

std::map<std::string, LateProcess::Times> LateProcess::threads_of(const std::string& folder) {
  std::map<std::string, Times> threads;
  std::error_code error;
  std::filesystem::directory_iterator tasks(folder + "/task", error);
  for (; !error && tasks != std::filesystem::directory_iterator() && threads.size() < kThreadsMax;
       tasks.increment(error)) {
    if (const auto times = times_of(tasks->path().string())) threads.emplace(tasks->path().filename().string(), *times);
  }
  return threads;
}

void LateProcess::look(std::uint32_t rank, const std::string& folder, TimePoint now) {
  if (folder.empty() || (seen_ && seen_->rank == rank && now - seen_->at <= kLookMax)) return;
  seen_ = {.rank = rank, .at = now, .threads = threads_of(folder)};
}

std::optional<Sighting> LateProcess::sight(std::uint32_t rank, const std::string& folder, TimePoint now) const {
  const char state = folder.empty() ? ' ' : state_of(folder);
  if (state == ' ') return std::nullopt;
  Sighting sighting{.rank = rank, .stopped = state == 'T' || state == 't'};  // by a signal or a debugger
  if (sighting.stopped) return sighting;
  if (!seen_ || seen_->rank != rank || now - seen_->at < kLookMin) return std::nullopt;
  const Duration time = now - seen_->at;
  for (const auto& [number, after] : threads_of(folder)) {
    const auto before = seen_->threads.find(number);
    if (before == seen_->threads.end()) continue;
    const auto percent = static_cast<std::uint8_t>(wait_between(before->second, after, time) * 100 / time);
    sighting.processor_wait = std::max(sighting.processor_wait, percent);
  }
  return sighting;
}

LateCause LateProcess::cause(std::uint32_t rank, const std::string& folder, TimePoint now, LateCause otherwise) const {
  const auto sighting = sight(rank, folder, now);
  return sighting ? sighting->cause(otherwise) : otherwise;
}

}  // namespace tributary::client
