#include "aggregator/daemon/trace_recorder.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "service-kit/http/query.h"
#include "service-kit/trace_json.h"

namespace tributary::aggregator {
namespace {

using nlohmann::json;
using service::HttpReply;
using transport::Clock;

constexpr std::uint32_t kSegmentsMin = 4096;  // of one worker, however many there are

HttpReply refuse(unsigned status, const std::string& why) {
  return {.status = status, .content_type = "text/plain; charset=utf-8", .body = why + "\n", .headers = {}};
}

template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number number{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string lane_text(const LaneStatus& lane) {
  json children = json::array();
  for (const ChildStatus& child : lane.of_children) {
    constexpr std::string_view kAggregator = "aggregator ";
    if (child.rank) {
      children.push_back({{"rank", *child.rank}});
    } else if (child.who.starts_with(kAggregator)) {
      children.push_back({{"aggregator", child.who.substr(kAggregator.size())}});
    } else {
      children.push_back(json::object());
    }
  }
  const json document{{"group", lane.group},
                      {"epoch", lane.epoch},
                      {"lane", lane.lane},
                      {"job", lane.job},
                      {"children", std::move(children)}};
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::uint32_t TraceRecorder::segments_max_of_worker(std::uint32_t workers) noexcept {
  return std::max(kSegmentsMin, kSegmentsMax / std::max(workers, 1U));
}

HttpReply TraceRecorder::answer(std::string_view query) {
  const auto values = service::read_query(query);
  if (!values) return refuse(400, "the query is no list such as 'seconds=0.5&job=NAME'");
  if (const auto text = service::value_of(*values, "number")) {
    const auto number = number_in<std::uint64_t>(*text);
    return number ? take(*number) : refuse(400, "'number' is no whole number");
  }
  const auto seconds = number_in<double>(service::value_of(*values, "seconds").value_or(""));
  if (!seconds || !(*seconds > 0) || *seconds > kSecondsMax)
    return refuse(400, "'seconds' must be a number above 0, at most 10; or 'number' names a trace that was recorded");
  return begin(*seconds, service::value_of(*values, "job").value_or(""));
}

HttpReply TraceRecorder::begin(double seconds, const std::string& job) {
  const auto now = Clock::now();
  if (now < until_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - now).count();
    return refuse(409, "another trace is recorded for " + std::to_string(left + 1) + " ms more");
  }
  until_ = now + std::chrono::duration_cast<transport::Duration>(std::chrono::duration<double>(seconds));
  const std::uint64_t key = job.empty() ? WorkerTrace::kAllJobs : WorkerTrace::key_of(job);
  for (const auto& worker : workers_) worker->trace().begin(key, until_);
  taken_.clear();
  lanes_.clear();
  note_lanes();
  return {.body = json{{"trace", ++number_}, {"seconds", seconds}}.dump() + "\n", .headers = {}};
}

HttpReply TraceRecorder::take(std::uint64_t number) {
  if (number == 0 || number != number_) return refuse(404, "the last trace has number " + std::to_string(number_));
  if (Clock::now() < until_) return refuse(409, "trace " + std::to_string(number) + " is not over");
  if (taken_.empty()) taken_ = document();
  return {.body = taken_, .headers = {}};
}

/// Adds the lanes that are there now. A lane of the trace's begin may have ended since then.
void TraceRecorder::note_lanes() {
  for (const WorkerSnapshot& worker : snapshots_of(workers_, kSnapshotLimit)) {
    for (const LaneStatus& status : worker.lanes) {
      LaneText lane{.group = status.group, .epoch = status.epoch, .lane = status.lane, .text = lane_text(status)};
      if (std::ranges::none_of(lanes_, [&](const LaneText& known) { return known.same_lane(lane); }))
        lanes_.push_back(std::move(lane));
    }
  }
}

std::string TraceRecorder::document() {
  note_lanes();
  std::string text = "{" + service::clock_members() +
                     ",\"aggregator\":" + json(name_).dump(-1, ' ', false, json::error_handler_t::replace) +
                     ",\"host\":" + json(host_id_).dump(-1, ' ', false, json::error_handler_t::replace) +
                     ",\"lanes\":[";
  for (const LaneText& lane : lanes_) text += (&lane == &lanes_.front() ? "" : ",") + lane.text;
  text += "],\"workers\":[";
  for (const auto& worker : workers_) {
    text += (worker == workers_.front() ? "{" : ",{") + service::segment_members(worker->trace().take()) + "}";
  }
  return text + "]}\n";
}

}  // namespace tributary::aggregator
