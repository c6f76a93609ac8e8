#include "client/api/rank_traces.h"

#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "client/api/flight_report.h"
#include "client/operation/payload.h"
#include "service-kit/trace_json.h"

namespace tributary::client {
namespace {

using Json = nlohmann::ordered_json;
using transport::TimePoint;

Json time_json(const std::optional<TimePoint>& at) {
  if (!at) return {};
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at->time_since_epoch()).count();
}

Json operation_json(const FlightEntry& entry, std::uint32_t nranks) {
  return {{"number", entry.number},
          {"call", to_string(entry.signature)},
          {"bytes", payload_bytes(entry.signature, nranks)},
          {"path", word_of(entry.path)},
          {"outcome", word_of(entry.outcome)},
          {"queued_ns", time_json(entry.queued)},
          {"started_ns", time_json(entry.started)},
          {"ended_ns", time_json(entry.ended)}};
}

/// Returns the communicator's object. The segments are written as text, because there may be many.
std::string communicator_text(FlightRecord& record) {
  const FlightOrigin& origin = record.origin();
  const auto trace = record.take_trace();
  Json operations = Json::array();
  for (const FlightEntry& entry : trace.operations) operations.push_back(operation_json(entry, origin.nranks));
  const Json head{{"job", origin.job},
                  {"group", origin.group},
                  {"host", origin.host},
                  {"rank", origin.rank},
                  {"ranks", origin.nranks},
                  {"operations_lost", trace.operations_lost},
                  {"operations", std::move(operations)}};
  std::string text = head.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();  // the closing brace
  return text + "," + service::segment_members(trace.segments) + "}";
}

}  // namespace

std::optional<std::string> RankTraces::answer(std::string_view line,
                                              std::span<const std::shared_ptr<FlightRecord>> records) {
  constexpr std::string_view kBegin = "trace begin ";
  if (line.starts_with(kBegin)) return begin(line.substr(kBegin.size()), records);
  if (line == "trace json") return take();
  return std::nullopt;
}

std::string RankTraces::begin(std::string_view milliseconds, std::span<const std::shared_ptr<FlightRecord>> records) {
  int time = 0;
  const char* const end = milliseconds.data() + milliseconds.size();
  const auto read = std::from_chars(milliseconds.data(), end, time);
  if (read.ec != std::errc{} || read.ptr != end || time < 1 || time > kMillisecondsMax)
    return "refused: the time must be 1 to " + std::to_string(kMillisecondsMax) + " milliseconds\n";
  const TimePoint now = transport::Clock::now();
  if (now < until_) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - now).count();
    return "refused: another trace is recorded for " + std::to_string(left + 1) + " ms more\n";
  }
  until_ = now + std::chrono::milliseconds(time);
  recorded_.assign(records.begin(), records.end());
  for (const auto& record : recorded_) record->begin_trace(until_);
  return "recording\n";
}

std::string RankTraces::take() {
  std::string text = "{" + service::clock_members() + ",\"pid\":" + std::to_string(::getpid()) + ",\"communicators\":[";
  for (const auto& record : recorded_) text += (record == recorded_.front() ? "" : ",") + communicator_text(*record);
  recorded_.clear();
  until_ = {};
  return text + "]}\n";
}

}  // namespace tributary::client
