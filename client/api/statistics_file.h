#pragma once
// The statistics of one communicator in a file, which rank 0 writes at the end: how many operations took which path, how
// long they took, what was lost, which ranks were late, and what would have been quicker.
#include <deque>
#include <string>
#include <string_view>

#include "client/communicator/settings.h"
#include "client/operation/flight_record.h"

namespace tributary::client {

/// One thread at a time calls these functions.
class StatisticsFile {
 public:
  static constexpr std::size_t kLateLinesMax = 100;  // a file has the last ones

  /// `folder`: gets the file; empty: there is no file.
  explicit StatisticsFile(std::string folder) : folder_(std::move(folder)) {}

  /// Notes the log line about a rank that others wait for.
  void note_late(std::string_view line);
  /// Writes the file of a communicator that ends now. Returns its path; an empty path if there is nothing to write:
  /// there is no folder, this is not rank 0, or no operation was called. Errc::io names the file and the reason.
  [[nodiscard]] Result<std::string> write(const CommunicatorSettings& settings, const CommunicatorInfo& info) const;

 private:
  [[nodiscard]] std::string text_of(const FlightRecord::Snapshot& calls, const CommunicatorSettings& settings,
                                    const CommunicatorInfo& info) const;

  const std::string folder_;
  const transport::TimePoint began_ = transport::Clock::now();
  std::deque<std::string> late_;  // with the seconds since the begin
};

}  // namespace tributary::client
