#pragma once
// Records traces of this process's communicators, when a client of the status port asks for them.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/operation/flight_record.h"

namespace tributary::client {

/// One thread uses it: the thread of the status port.
class RankTraces {
 public:
  static constexpr int kMillisecondsMax = 60'000;

  /// Answers the lines of a trace; no value: the line is another one.
  ///   trace begin MILLISECONDS   begins to record all of the records; it ends by itself after this time
  ///   trace json                 ends it, and returns what was recorded
  [[nodiscard]] std::optional<std::string> answer(std::string_view line,
                                                  std::span<const std::shared_ptr<FlightRecord>> records);

 private:
  [[nodiscard]] std::string begin(std::string_view milliseconds,
                                  std::span<const std::shared_ptr<FlightRecord>> records);
  [[nodiscard]] std::string take();

  std::vector<std::shared_ptr<FlightRecord>> recorded_;
  transport::TimePoint until_{};
};

}  // namespace tributary::client
