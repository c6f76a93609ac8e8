#pragma once
// The documents of a trace, as ranks and aggregators answer them. Times are nanoseconds on the steady clock of the
// process that wrote them, until align() has put them on one clock.
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"
#include "tributary/protocol/segment_trace.h"

namespace tributary::cli {

struct TracedOperation {
  std::uint64_t number = 0, bytes = 0;
  std::string call, path, outcome;
  std::optional<std::int64_t> queued, started, ended;
};

/// A communicator of one process.
struct TracedRank {
  std::string job, group, host;
  std::uint32_t rank = 0, ranks = 0;
  std::int64_t pid = 0;
  std::size_t clock = 0;  // index in TraceParts::clocks
  std::vector<TracedOperation> operations;
  std::uint64_t operations_lost = 0;
  std::vector<SegmentEvent> segments;
  std::uint64_t segments_lost = 0;
};

struct LaneKey {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0, lane = 0;
  auto operator<=>(const LaneKey&) const = default;
};
[[nodiscard]] inline LaneKey lane_of(const SegmentEvent& e) noexcept {
  return {.group = e.group, .epoch = e.epoch, .lane = e.lane};
}

/// A child of a lane: a rank or an aggregator; neither: it had not joined.
struct TracedChild {
  std::optional<std::uint32_t> rank;
  std::string aggregator;
};

struct TracedAggregator {
  std::string name, host;
  std::size_t clock = 0;
  std::map<LaneKey, std::vector<TracedChild>> lanes;
  std::vector<SegmentEvent> segments;
  std::uint64_t segments_lost = 0;
};

/// The clock that all processes of a host read, unless they have namespaces of time.
struct TraceClock {
  std::string name;
  std::string host;
  std::int64_t steady = 0, calendar = 0;  // one moment on this clock, and since 1970
};

struct TraceParts {
  std::vector<TraceClock> clocks;
  std::vector<TracedRank> ranks;
  std::vector<TracedAggregator> aggregators;
};

/// Add one document. Errc::bad_argument: it has another form; then `parts` is unchanged.
[[nodiscard]] Status add_ranks(TraceParts& parts, const std::string& document);
[[nodiscard]] Status add_aggregator(TraceParts& parts, const std::string& document);

}  // namespace tributary::cli
