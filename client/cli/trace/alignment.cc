#include "client/cli/trace/alignment.h"

#include <algorithm>
#include <cstdio>

namespace tributary::cli {
namespace {

constexpr std::int64_t kUnbounded = std::int64_t{1} << 62;

/// [x][y]: the most that clock y may be ahead of clock x.
using Bounds = std::vector<std::vector<std::int64_t>>;

std::size_t clock_of(const TraceParts& parts, std::size_t participant) {
  const std::size_t ranks = parts.ranks.size();
  return participant < ranks ? parts.ranks[participant].clock : parts.aggregators[participant - ranks].clock;
}

Bounds bounds_of(const TraceParts& parts, const SegmentWays& ways) {
  Bounds bounds(parts.clocks.size(), std::vector<std::int64_t>(parts.clocks.size(), kUnbounded));
  const auto tighten = [&](SegmentStop earlier, SegmentStop later) {
    const std::size_t from = clock_of(parts, earlier.participant), to = clock_of(parts, later.participant);
    if (from == to) return;
    const std::int64_t took = event_at(parts, later).at_ns - event_at(parts, earlier).at_ns;
    bounds[from][to] = std::min(bounds[from][to], took);
  };
  for (const MessagePair& message : ways.messages()) tighten(message.sent, message.came);
  for (std::size_t rank = 0; rank < parts.ranks.size(); ++rank) {
    for (std::size_t event = 0; event < parts.ranks[rank].segments.size(); ++event) {
      if (parts.ranks[rank].segments[event].moment != SegmentMoment::sent_up) continue;
      const auto way = ways.way_of({.participant = rank, .event = event});
      for (std::size_t i = 0; i + 1 < way.size(); ++i) tighten(way[i], way[i + 1]);
    }
  }
  return bounds;
}

/// Returns the least bound of each clock over the first clock, also by way of other clocks.
std::vector<std::int64_t> least(const Bounds& bounds, std::size_t first, bool reverse) {
  const std::size_t clocks = bounds.size();
  std::vector<std::int64_t> best(clocks, kUnbounded);
  best[first] = 0;
  for (std::size_t round = 0; round < clocks; ++round) {  // clocks that drift apart may give bounds without a least one
    for (std::size_t from = 0; from < clocks; ++from) {
      for (std::size_t to = 0; to < clocks; ++to) {
        const std::int64_t bound = reverse ? bounds[to][from] : bounds[from][to];
        if (to == first || best[from] == kUnbounded || bound == kUnbounded) continue;
        best[to] = std::clamp(best[from] + bound, -kUnbounded, best[to]);
      }
    }
  }
  return best;
}

std::string duration(double nanoseconds) {
  char text[32];
  const double size = nanoseconds < 0 ? -nanoseconds : nanoseconds;
  if (size < 1e6) {
    std::snprintf(text, sizeof text, "%.1f us", nanoseconds / 1e3);
  } else if (size < 1e9) {
    std::snprintf(text, sizeof text, "%.3f ms", nanoseconds / 1e6);
  } else {
    std::snprintf(text, sizeof text, "%.6f s", nanoseconds / 1e9);
  }
  return text;
}

}  // namespace

std::vector<ClockOffset> offsets_of(const TraceParts& parts, const SegmentWays& ways) {
  if (parts.ranks.empty()) return std::vector<ClockOffset>(parts.clocks.size());
  const std::size_t first = parts.ranks.front().clock;
  const Bounds bounds = bounds_of(parts, ways);
  const auto above = least(bounds, first, false);  // most that the clock may be ahead
  const auto below = least(bounds, first, true);   // most that it may be behind
  std::vector<ClockOffset> offsets;
  for (std::size_t i = 0; i < parts.clocks.size(); ++i) {
    if (i == first) {
      offsets.push_back({.ahead = 0, .within = 0});
    } else if (above[i] == kUnbounded || below[i] == kUnbounded) {
      const TraceClock &base = parts.clocks[first], &other = parts.clocks[i];
      offsets.push_back({.ahead = (other.steady - base.steady) - (other.calendar - base.calendar), .within = {}});
    } else {
      const std::int64_t width = above[i] + below[i];
      offsets.push_back({.ahead = (above[i] - below[i]) / 2, .within = (width < 0 ? -width : width) / 2 + 1});
    }
  }
  return offsets;
}

void shift(TraceParts& parts, const std::vector<ClockOffset>& offsets) {
  const auto move = [](std::optional<std::int64_t>& at, std::int64_t by) {
    if (at) *at -= by;
  };
  for (TracedRank& rank : parts.ranks) {
    const std::int64_t by = offsets[rank.clock].ahead;
    for (SegmentEvent& e : rank.segments) e.at_ns -= by;
    for (TracedOperation& o : rank.operations) {
      for (auto* at : {&o.queued, &o.started, &o.ended}) move(*at, by);
    }
  }
  for (TracedAggregator& aggregator : parts.aggregators) {
    for (SegmentEvent& e : aggregator.segments) e.at_ns -= offsets[aggregator.clock].ahead;
  }
  for (std::size_t i = 0; i < parts.clocks.size(); ++i) parts.clocks[i].steady -= offsets[i].ahead;
}

std::vector<std::string> clock_lines(const TraceParts& parts, const std::vector<ClockOffset>& offsets) {
  if (parts.clocks.size() < 2) return {"all processes read the same clock"};
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (i == parts.ranks.front().clock) continue;
    lines.push_back("the clock of host " + parts.clocks[i].host + " was ahead by " +
                    duration(static_cast<double>(offsets[i].ahead)) +
                    (offsets[i].within
                         ? ", with an error of at most " + duration(static_cast<double>(*offsets[i].within))
                         : ", by the calendars of the hosts: no messages went both ways, and the error "
                           "is not known"));
  }
  return lines;
}

}  // namespace tributary::cli
