#pragma once
// The moments of segments, and of messages between ranks, that a trace shows: a rank and an aggregator note them in the
// same form.
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "tributary/protocol/trace_log.h"

namespace tributary {

/// A moment is noted before a frame is sent, and after it has come. So the times of two ends bound the difference of
/// their clocks.
enum class SegmentMoment : std::uint8_t {
  sent_up,      // a rank or an aggregator sends its contribution to its parent
  came_up,      // a child's contribution has come to an aggregator
  sent_down,    // an aggregator sends the result to all of its children
  came_down,    // the result has come from the parent
  sent_across,  // a rank sends a message to another rank
  came_across,  // another rank's message has come
};

struct SegmentEvent {
  std::int64_t at_ns = 0;  // on the steady clock
  // For a message between ranks: group is 0, or 1 between leaders of hosts, sequence its round, epoch the number of the rank that notes it, member the
  // number of the other rank, lane the class of their connection.
  std::uint64_t group = 0, sequence = 0, operation = 0;
  std::uint32_t epoch = 0;
  std::uint32_t bytes = 0;   // of the frame's payload
  std::uint32_t member = 0;  // for came_up: the child's number in the lane; on a rank: its number in the group
  std::uint8_t lane = 0;
  SegmentMoment moment = SegmentMoment::sent_up;
};

using SegmentTrace = TraceLog<SegmentEvent>;

[[nodiscard]] inline std::chrono::steady_clock::time_point time_of(const SegmentEvent& event) noexcept {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(event.at_ns));
}

}  // namespace tributary
