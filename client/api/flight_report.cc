#include "client/api/flight_report.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "client/operation/payload.h"
#include "service-kit/status_folder.h"
#include "service-kit/whole_file.h"

namespace tributary::client {
namespace {

using transport::TimePoint;
using Json = nlohmann::ordered_json;

constexpr int kFormat = 1;

/// One moment on the steady clock and on the calendar's clock.
struct Moment {
  TimePoint steady = transport::Clock::now();
  std::chrono::system_clock::time_point calendar = std::chrono::system_clock::now();

  [[nodiscard]] std::int64_t nanoseconds(TimePoint at) const {
    const auto since_1970 = calendar.time_since_epoch() - (steady - at);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
  }
  /// Returns a text such as "1.250".
  [[nodiscard]] std::string seconds_since(TimePoint at) const {
    const auto ms =
        std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(steady - at).count(), 0);
    const std::string rest = std::to_string(1000 + ms % 1000);
    return std::to_string(ms / 1000) + "." + rest.substr(1);
  }
};

std::string line_of(const FlightEntry& entry, const Moment& now) {
  std::string line = "operation " + std::to_string(entry.number) + " (" + to_string(entry.signature) + "), path " +
                     std::string(word_of(entry.path)) + ", " + std::string(word_of(entry.outcome));
  const auto add = [&](const char* what, const std::optional<TimePoint>& at) {
    if (at) line += std::string(", ") + what + " " + now.seconds_since(*at) + " s ago";
  };
  add("queued", entry.queued);
  add("started", entry.started);
  add("first byte", entry.first_byte);
  add("last byte", entry.last_byte);
  add("ended", entry.ended);
  return line;
}

std::string line_of(const FlightOrigin& origin, const FlightRecord::Snapshot& record, const Moment& now) {
  std::string line = "job " + origin.job + ", group " + origin.group + ", rank " + std::to_string(origin.rank) +
                     " of " + std::to_string(origin.nranks) + ": " + std::to_string(record.called) + " calls";
  const auto open = std::ranges::find(record.entries, FlightOutcome::open, &FlightEntry::outcome);
  line += open == record.entries.end() ? "; no operation is open" : "; " + line_of(*open, now);
  if (!record.failure.empty()) line += "; failed: " + record.failure;
  return line + "\n";
}

Json json_of(const FlightEntry& entry, std::uint32_t nranks, const Moment& now) {
  const auto time = [&](const std::optional<TimePoint>& at) { return at ? Json(now.nanoseconds(*at)) : Json(); };
  const Signature& s = entry.signature;
  return {{"number", entry.number},
          {"call", to_string(s)},
          {"collective", to_string(s.collective)},
          {"dtype", to_string(s.dtype)},
          {"count", s.count},
          {"root", s.root},
          {"bytes", payload_bytes(s, nranks)},
          {"path", word_of(entry.path)},
          {"outcome", word_of(entry.outcome)},
          {"queued_ns", time(entry.queued)},
          {"started_ns", time(entry.started)},
          {"first_byte_ns", time(entry.first_byte)},
          {"last_byte_ns", time(entry.last_byte)},
          {"ended_ns", time(entry.ended)}};
}

/// Leaves the oldest operation that has not succeeded, and the last one.
void keep_calls(std::vector<FlightEntry>& entries) {
  const auto open =
      std::ranges::find_if(entries, [](const FlightEntry& entry) { return entry.outcome != FlightOutcome::success; });
  std::vector<FlightEntry> kept;
  if (open != entries.end()) kept.push_back(*open);
  if (!entries.empty() && (kept.empty() || kept.back().number != entries.back().number)) kept.push_back(entries.back());
  entries = std::move(kept);
}

enum class Extent : std::uint8_t { whole, calls };

Json json_of(const FlightRecord& record, Extent extent, const Moment& now) {
  const FlightOrigin& origin = record.origin();
  auto snapshot = record.snapshot();
  if (extent == Extent::calls) keep_calls(snapshot.entries);
  Json operations = Json::array();
  for (const FlightEntry& entry : snapshot.entries) operations.push_back(json_of(entry, origin.nranks, now));
  return {{"job", origin.job},           {"group", origin.group},
          {"host", origin.host},         {"rank", origin.rank},
          {"ranks", origin.nranks},      {"called", snapshot.called},
          {"failure", snapshot.failure}, {"operations", std::move(operations)}};
}

}  // namespace

std::string_view word_of(FlightPath path) noexcept {
  constexpr std::string_view words[] = {"undecided", "in-network", "between ranks", "by hosts", "shared memory"};
  return words[static_cast<std::size_t>(path)];
}

std::string_view word_of(FlightOutcome outcome) noexcept {
  constexpr std::string_view words[] = {"open", "success", "failure"};
  return words[static_cast<std::size_t>(outcome)];
}

std::string status_text(FlightRecords records) {
  const Moment now;
  std::string text;
  for (const auto& record : records) text += line_of(record->origin(), record->snapshot(), now);
  return text;
}

std::string flight_text(FlightRecords records) {
  const Moment now;
  std::string text;
  for (const auto& record : records) {
    const auto snapshot = record->snapshot();
    text += line_of(record->origin(), snapshot, now);
    for (const FlightEntry& entry : snapshot.entries) text += "  " + line_of(entry, now) + "\n";
  }
  return text;
}

std::string late_text(FlightRecords records, std::string_view group, std::uint64_t number) {
  const Moment now;
  std::string text;
  for (const auto& record : records) {
    const FlightOrigin& origin = record->origin();
    if (origin.group != group) continue;
    const auto snapshot = record->snapshot();
    if (snapshot.called > number) continue;
    text += "job " + origin.job + ", group " + origin.group + ", rank " + std::to_string(origin.rank) + " of " +
            std::to_string(origin.nranks) + " has not called operation " + std::to_string(number);
    text += snapshot.entries.empty() ? "; it has made no call\n"
                                     : "; its last call: " + line_of(snapshot.entries.back(), now) + "\n";
  }
  return text;
}

namespace {

std::string document_of(FlightRecords records, Extent extent) {
  const Moment now;
  Json communicators = Json::array();
  for (const auto& record : records) communicators.push_back(json_of(*record, extent, now));
  const Json document{{"format", kFormat},
                      {"pid", ::getpid()},
                      {"time_ns", now.nanoseconds(now.steady)},
                      {"communicators", std::move(communicators)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string flight_json(FlightRecords records) {
  return document_of(records, Extent::whole);
}

std::string calls_json(FlightRecords records) {
  return document_of(records, Extent::calls);
}

Result<std::string> write_flight_file(const std::string& folder, const std::shared_ptr<const FlightRecord>& record) {
  const FlightOrigin& origin = record->origin();
  std::string path = folder + "/" + service::file_name_of(origin.job) + "-" + origin.group + "-rank-" +
                     std::to_string(origin.rank) + ".json";
  if (const Status ok = service::write_whole_file(path, flight_json({&record, 1}), 0600); !ok)
    return fail(Errc::io, "the flight record was not written to " + path + ": " + ok.error().message);
  return path;
}

}  // namespace tributary::client
