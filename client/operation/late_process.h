#pragma once
// Looks at the process of a late rank on the same host: is it stopped, or does one of its threads wait for a processor?
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tributary/protocol/late_rank.h"
#include "tributary/protocol/rank_troubles.h"

namespace tributary::client {

/// Returns the folder of the kernel's files about the process of a pidfd; empty if the process has ended, or is not
/// visible here.
[[nodiscard]] std::string folder_of_descriptor(int descriptor);
[[nodiscard]] std::string folder_of_process(pid_t process);

/// One thread uses it.
class LateProcess {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kLookMin = std::chrono::milliseconds(200);  // a shorter time says little
  static constexpr Duration kLookMax = std::chrono::seconds(5);         // after a longer time, looks begin anew
  static constexpr std::size_t kThreadsMax = 64;                        // further threads are not looked at

  /// The time for which a thread ran, and for which it waited for a processor, since it began.
  struct Times {
    Duration ran{}, waited{};
    bool ready = false;  // it runs now, or waits for a processor
  };

  /// Begins to look at a rank, if it does not look at this rank yet. `folder`: see folder_of_process().
  void look(std::uint32_t rank, const std::string& folder, TimePoint now);
  /// Returns what is seen since look(); nullopt if this is too short a time, or if the process is not visible. A process
  /// that itself fills the processors on which it may run does not wait for one: its threads wait for each other.
  [[nodiscard]] std::optional<Sighting> sight(std::uint32_t rank, const std::string& folder, TimePoint now) const;
  /// Returns the cause that the sighting gives; else `otherwise`.
  [[nodiscard]] LateCause cause(std::uint32_t rank, const std::string& folder, TimePoint now,
                                LateCause otherwise) const;

 private:
  struct Seen {
    std::uint32_t rank;
    TimePoint at;
    std::map<std::string, Times> threads;  // by number
  };
  [[nodiscard]] static std::map<std::string, Times> threads_of(const std::string& folder);

  std::optional<Seen> seen_;
};

}  // namespace tributary::client
