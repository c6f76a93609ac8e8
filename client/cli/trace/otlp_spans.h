#pragma once
// The operations of a trace as spans for a collector of OpenTelemetry. The spans of one operation on all ranks have one
// trace id, also if several hosts send them: it comes from the group and the operation's number alone.
#include <cstddef>
#include <functional>
#include <string>

#include "client/cli/trace/trace_parts.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The greatest number of spans in one document: some 500 KiB.
inline constexpr std::size_t kSpansMax = 1000;

/// Calls `send` with documents of all operations of `parts`, in OTLP's JSON encoding; the times of `parts` are on one
/// clock. Stops at the first error, and returns it. An operation that has not ended ends when the trace was taken, and
/// has the attribute tributary.open.
[[nodiscard]] Status otlp_spans(const TraceParts& parts,
                                const std::function<Status(const std::string& document)>& send);

}  // namespace tributary::cli
