#pragma once
// The parts of a trace's documents that ranks and aggregators write in the same form, as members of a JSON object.
#include <string>

#include "tributary/protocol/segment_trace.h"

namespace tributary::service {

inline constexpr int kTraceFormat = 1;

/// Returns the members `format`, `clock`, `steady_ns` and `calendar_ns`: which clock this process reads, and its time
/// now, on the steady clock and since 1970. Processes with an equal text under `clock` read the same steady clock.
[[nodiscard]] std::string clock_members();
/// Returns the members `segments` and `segments_lost`. A segment's moment is a list of numbers: moment, time in
/// nanoseconds, group, epoch, lane, sequence, operation, bytes, member.
[[nodiscard]] std::string segment_members(const SegmentTrace::Recording& recording);

}  // namespace tributary::service
