#include "client/cli/trace/trace_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "service-kit/trace_json.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr std::uint64_t kTimeMax = std::uint64_t{1} << 61;  // so that differences and their sums fit

[[noreturn]] void refuse(const std::string& why) {
  throw json::other_error::create(0, why, nullptr);
}

std::uint64_t number_in(const json& value, std::uint64_t max) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max)
    refuse("a number is not one from 0 to " + std::to_string(max));
  return value.get<std::uint64_t>();
}

std::int64_t time_in(const json& value) {
  return static_cast<std::int64_t>(number_in(value, kTimeMax));
}

std::optional<std::int64_t> time_in(const json& object, const char* key) {
  const json& value = object.at(key);
  if (value.is_null()) return std::nullopt;
  return time_in(value);
}

void check_format(const json& document) {
  if (const int format = document.at("format").get<int>(); format != service::kTraceFormat)
    refuse("it has form " + std::to_string(format) + ", and this program reads form " +
           std::to_string(service::kTraceFormat) + ": use the same version of both");
}

TraceClock clock_in(const json& document) {
  return {.name = document.at("clock").get<std::string>(),
          .host = {},
          .steady = time_in(document.at("steady_ns")),
          .calendar = time_in(document.at("calendar_ns"))};
}

/// Returns the number of the clock, and adds it if it is new.
std::size_t number_of(std::vector<TraceClock>& clocks, TraceClock clock) {
  const auto known = std::ranges::find(clocks, clock.name, &TraceClock::name);
  if (known != clocks.end()) return static_cast<std::size_t>(known - clocks.begin());
  clocks.push_back(std::move(clock));
  return clocks.size() - 1;
}

TracedOperation operation_in(const json& object) {
  return {.number = object.at("number").get<std::uint64_t>(),
          .bytes = object.at("bytes").get<std::uint64_t>(),
          .call = object.at("call").get<std::string>(),
          .path = object.at("path").get<std::string>(),
          .outcome = object.at("outcome").get<std::string>(),
          .queued = time_in(object, "queued_ns"),
          .started = time_in(object, "started_ns"),
          .ended = time_in(object, "ended_ns")};
}

/// `last`: the last moment that its writer may note.
SegmentEvent segment_in(const json& list, SegmentMoment last) {
  const auto number = [&list](std::size_t i, std::uint64_t max) { return number_in(list.at(i), max); };
  return {.at_ns = time_in(list.at(1)),
          .group = number(2, UINT64_MAX),
          .sequence = number(5, UINT64_MAX),
          .operation = number(6, UINT64_MAX),
          .epoch = static_cast<std::uint32_t>(number(3, UINT32_MAX)),
          .bytes = static_cast<std::uint32_t>(number(7, UINT32_MAX)),
          .member = static_cast<std::uint32_t>(number(8, UINT32_MAX)),
          .lane = static_cast<std::uint8_t>(number(4, UINT8_MAX)),
          .moment = static_cast<SegmentMoment>(number(0, static_cast<std::uint64_t>(last)))};
}

void add_segments(std::vector<SegmentEvent>& to, const json& object, SegmentMoment last) {
  for (const json& one : object.at("segments")) to.push_back(segment_in(one, last));
}

TracedRank rank_in(const json& object) {
  TracedRank rank{.job = object.at("job").get<std::string>(),
                  .group = object.at("group").get<std::string>(),
                  .host = object.at("host").get<std::string>(),
                  .rank = object.at("rank").get<std::uint32_t>(),
                  .ranks = object.at("ranks").get<std::uint32_t>(),
                  .operations_lost = object.at("operations_lost").get<std::uint64_t>(),
                  .segments_lost = object.at("segments_lost").get<std::uint64_t>()};
  for (const json& operation : object.at("operations")) rank.operations.push_back(operation_in(operation));
  add_segments(rank.segments, object, SegmentMoment::came_across);
  return rank;
}

TracedChild child_in(const json& object) {
  TracedChild child;
  if (object.contains("rank")) child.rank = object.at("rank").get<std::uint32_t>();
  child.aggregator = object.value("aggregator", "");
  return child;
}

template <class Read>
Status read_document(const std::string& document, Read read) {
  try {
    const json parsed = json::parse(document);
    check_format(parsed);
    read(parsed);
  } catch (const json::exception& error) {
    return fail(Errc::bad_argument, std::string("no trace: ") + error.what());
  }
  return {};
}

}  // namespace

Status add_ranks(TraceParts& parts, const std::string& document) {
  return read_document(document, [&parts](const json& read) {
    TraceClock clock = clock_in(read);
    const auto pid = read.at("pid").get<std::int64_t>();
    std::vector<TracedRank> ranks;
    for (const json& communicator : read.at("communicators")) ranks.push_back(rank_in(communicator));
    if (ranks.empty()) return;
    clock.host = ranks.front().host;
    const std::size_t number = number_of(parts.clocks, std::move(clock));
    for (TracedRank& rank : ranks) {
      rank.pid = pid;
      rank.clock = number;
      parts.ranks.push_back(std::move(rank));
    }
  });
}

Status add_aggregator(TraceParts& parts, const std::string& document) {
  return read_document(document, [&parts](const json& read) {
    TraceClock clock = clock_in(read);
    TracedAggregator aggregator{.name = read.at("aggregator").get<std::string>(),
                                .host = read.at("host").get<std::string>()};
    for (const json& lane : read.at("lanes")) {
      const LaneKey key{.group = lane.at("group").get<std::uint64_t>(),
                        .epoch = lane.at("epoch").get<std::uint32_t>(),
                        .lane = lane.at("lane").get<std::uint32_t>()};
      for (const json& child : lane.at("children")) aggregator.lanes[key].push_back(child_in(child));
    }
    for (const json& worker : read.at("workers")) {
      add_segments(aggregator.segments, worker, SegmentMoment::came_down);
      aggregator.segments_lost += worker.at("segments_lost").get<std::uint64_t>();
    }
    clock.host = aggregator.host;
    aggregator.clock = number_of(parts.clocks, std::move(clock));
    parts.aggregators.push_back(std::move(aggregator));
  });
}

}  // namespace tributary::cli
