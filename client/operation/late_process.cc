#include "client/operation/late_process.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace tributary::client {
namespace {

constexpr int kFullTenths = 9;  // of its processors' time: a process that ran for so long had all of it

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

/// Adds the processors on which a thread may run.
void add_processors_of(const std::string& thread, cpu_set_t& all) {
  pid_t number = 0;
  cpu_set_t processors{};
  if (std::from_chars(thread.data(), thread.data() + thread.size(), number).ec != std::errc{}) return;
  if (sched_getaffinity(number, sizeof processors, &processors) == 0) CPU_OR(&all, &all, &processors);
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
  Duration ran{};
  cpu_set_t processors{};
  for (const auto& [number, after] : threads_of(folder)) {
    const auto before = seen_->threads.find(number);
    if (before == seen_->threads.end()) continue;
    ran += after.ran - before->second.ran;
    add_processors_of(number, processors);
    const auto percent = static_cast<std::uint8_t>(wait_between(before->second, after, time) * 100 / time);
    sighting.processor_wait = std::max(sighting.processor_wait, percent);
  }
  const int count = CPU_COUNT(&processors);
  if (count > 0 && ran >= time * count / 10 * kFullTenths) sighting.processor_wait = 0;
  return sighting;
}

LateCause LateProcess::cause(std::uint32_t rank, const std::string& folder, TimePoint now, LateCause otherwise) const {
  const auto sighting = sight(rank, folder, now);
  return sighting ? sighting->cause(otherwise) : otherwise;
}

}  // namespace tributary::client
