#pragma once
// Puts the times of all processes on one clock, by the messages between them: no message comes before it was sent. So
// each message from X to Y bounds the difference of their clocks from one side, and an answer from the other side. The
// least bounds over all messages and ways give an interval; its middle is the estimate, and half of it the error.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/trace/segment_ways.h"
#include "client/cli/trace/trace_parts.h"

namespace tributary::cli {

/// The difference of one clock from the clock of the first rank.
struct ClockOffset {
  std::int64_t ahead = 0;  // nanoseconds
  std::optional<std::int64_t>
      within;  // greatest error; no value: no messages went both ways, so the difference is that
               // of the calendars' clocks, with an unknown error
};

/// Returns an offset for each clock of the parts.
[[nodiscard]] std::vector<ClockOffset> offsets_of(const TraceParts& parts, const SegmentWays& ways);
/// Subtracts the offsets from all times.
void shift(TraceParts& parts, const std::vector<ClockOffset>& offsets);
/// Returns a line for people about each clock; one line if there is one clock.
[[nodiscard]] std::vector<std::string> clock_lines(const TraceParts& parts, const std::vector<ClockOffset>& offsets);

}  // namespace tributary::cli
