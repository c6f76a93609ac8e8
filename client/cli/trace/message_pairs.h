#pragma once
// Finds the two ends of each message between ranks: the moment before it was sent, and the moment after it had come.
#include <vector>

#include "client/cli/trace/trace_parts.h"

namespace tributary::cli {

/// A moment of a segment or a message. Participants are the ranks of the parts, and after them the aggregators.
struct SegmentStop {
  std::size_t participant = 0;
  std::size_t event = 0;  // index of its event in the participant's segments
  auto operator<=>(const SegmentStop&) const = default;
};

struct MessagePair {
  SegmentStop sent, came;
};

[[nodiscard]] inline bool is_message(const SegmentEvent& e) noexcept {
  return e.moment == SegmentMoment::sent_across || e.moment == SegmentMoment::came_across;
}

/// Returns the messages of which both ends were recorded. Several messages of one round between two ranks come in the
/// order in which they were sent; if some of them were not recorded at one end, the round has no pair.
[[nodiscard]] std::vector<MessagePair> message_pairs(const std::vector<TracedRank>& ranks);

}  // namespace tributary::cli
