#pragma once
// Writes a trace in the form of Chrome's trace viewer, which Perfetto reads too: a JSON object with a list of events.
//
//   - each process of ranks and each aggregator is a process of the trace
//   - a process of ranks has threads for the operations of each communicator, and one for each lane; an operation is a
//     slice, and so is the moment at which a segment's contribution leaves or its result comes
//   - an aggregator has a thread for each lane, with the moments of segments
//   - each segment of a rank is a flow from slice to slice: from the rank up to the root, and back
//   - the messages between ranks of one class have a thread at each rank, and each message is a flow between two ranks
// The times of a thread never go back: moments at the same nanosecond are set a nanosecond apart.
#include <iosfwd>
#include <string>
#include <vector>

#include "client/cli/trace/segment_ways.h"
#include "client/cli/trace/trace_parts.h"

namespace tributary::cli {

struct ChromeCounts {
  std::size_t operations = 0;
  std::size_t segments = 0;  // segments of ranks that have a flow
  std::size_t messages = 0;  // messages between ranks that have a flow
};

/// Writes the trace of `parts`, whose times are on one clock. `from`: where slices of earlier operations begin; the
/// trace's time 0. `notes`: sentences for the reader, kept in the file.
ChromeCounts write_chrome_trace(std::ostream& out, const TraceParts& parts, const SegmentWays& ways, std::int64_t from,
                                const std::vector<std::string>& notes);

}  // namespace tributary::cli
