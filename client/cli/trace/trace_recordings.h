#pragma once
// Recordings of the ranks of one host, and of aggregators, at one time: their documents as they were answered. Files of
// several hosts are merged into one trace.
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/trace/trace_parts.h"

namespace tributary::cli {

struct TraceDocument {
  std::string from;  // the port, or the aggregator, that answered it
  std::string text;
};

struct TraceRecordings {
  std::string job;
  std::int64_t ago = 0;  // nanoseconds from the begin of the recording until the ranks answered
  std::vector<TraceDocument> ranks, aggregators;
};

/// Returns the recordings as JSON. Documents that are no JSON are left out.
[[nodiscard]] std::string to_json(const TraceRecordings& recordings);
/// Adds the recordings of a file. Errc::bad_argument: it has another form, or is of another job.
[[nodiscard]] Status add_recordings(TraceRecordings& to, const std::string& text);
/// Reads the documents. `troubles` gets a sentence for each that has another form.
[[nodiscard]] TraceParts parts_of(const TraceRecordings& recordings, std::vector<std::string>& troubles);

}  // namespace tributary::cli
