#pragma once
// Finds who is late in a call in shared memory: a rank that waits calls look() after each nap, and the log gets the
// name of the rank for which it waits. The looks at files of the kernel about that rank's process have a pause, because
// naps are short.
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "client/collectives/local/late_calls.h"
#include "client/operation/absences.h"
#include "client/operation/late_log.h"
#include "client/operation/late_process.h"

namespace tributary::client::local {

/// One thread uses it.
class LateWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kLookAfter{200};   // after this wait for a rank, look at its process
  static constexpr std::chrono::milliseconds kLookPause{100};   // between two looks
  static constexpr std::chrono::milliseconds kAgainAfter{500};  // a shorter wait for a rank says nothing
  static constexpr std::chrono::seconds kSayPause{1};           // between two words to the log about the same wait

  /// The rank for which a call waits.
  struct Late {
    std::uint32_t rank;
    bool has_called;
  };
  /// The wait of a call.
  struct Wait {
    std::uint64_t call;  // its number
    TimePoint since;
    const Absences& absences;
  };

  /// `folder_of`: returns the folder of the kernel's files about a rank's process; empty: there is none.
  LateWatch(LateLog::Group group, LateLog::Tell tell, std::function<std::string(std::uint32_t)> folder_of)
      : log_(std::move(group), std::move(tell)), folder_of_(std::move(folder_of)) {}

  /// Notes the begin of a call.
  void begin() noexcept { said_at_.reset(); }
  /// Notes the end of a call.
  void end(bool ok) {
    if (log_.names()) [[unlikely]]
      end_of_name(ok);
  }
  /// Looks who is late, unless it is too early for this or for another look. `latest`: returns the rank.
  void look(const Wait& wait, const std::function<std::optional<Late>()>& latest, TimePoint now);

 private:
  void end_of_name(bool ok);
  [[nodiscard]] bool due(const Wait& wait, TimePoint now) const noexcept;

  LateLog log_;
  LateCalls calls_;
  LateProcess process_;
  const std::function<std::string(std::uint32_t)> folder_of_;
  std::optional<TimePoint> said_at_;  // the log may have named a rank for which this call waits
  std::optional<TimePoint> looked_at_;
};

}  // namespace tributary::client::local
