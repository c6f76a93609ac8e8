#include "client/api/statistics_file.h"

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "client/communicator/quicker_calls.h"
#include "service-kit/status_folder.h"
#include "service-kit/whole_file.h"
#include "tributary/protocol/reason_counts.h"

namespace tributary::client {
namespace {

using transport::Duration;
using Json = nlohmann::ordered_json;

constexpr int kStatisticsFormat = 1;

/// Rounds to microseconds, so that the text has no digits without meaning.
double seconds(Duration time) {
  return static_cast<double>(std::chrono::duration_cast<std::chrono::microseconds>(time).count()) / 1e6;
}

/// Returns a text such as "2026-11-20T14:03:11Z".
std::string calendar_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[sizeof "2026-11-20T14:03:11Z"];
  return {text, std::strftime(text, sizeof text, "%FT%TZ", &parts)};
}

Json reasons_json(const ReasonNumbers& reasons) {
  Json list = Json::object();
  reasons.for_each([&list](std::string_view code, std::uint64_t count) { list[std::string(code)] = count; });
  return list;
}

std::string_view path_of(const CommunicatorInfo& info) {
  if (info.local) return "shared memory";
  return info.in_network ? "in-network" : "between ranks";
}

Json to_json(const std::vector<QuickerCall>& calls) {
  Json all = Json::array();
  for (const QuickerCall& it : calls) {
    all.push_back({{"call", tributary::to_string(it.call)},
                   {"calls", it.calls},
                   {"path", it.path == FlightPath::in_network ? "in-network" : "between ranks"},
                   {"seconds", it.took_s},
                   {"quicker_way", tuning::text_of(it.way)},
                   {"would_take_seconds", it.would_take_s}});
  }
  return all;
}

}  // namespace

void StatisticsFile::note_late(std::string_view line) {
  if (folder_.empty()) return;
  if (late_.size() == kLateLinesMax) late_.pop_front();
  late_.push_back("after " + std::to_string(static_cast<std::uint64_t>(seconds(transport::Clock::now() - began_))) +
                  " s: " + std::string(line));
}

std::string StatisticsFile::text_of(const FlightRecord::Snapshot& calls, const CommunicatorSettings& settings,
                                    const CommunicatorInfo& info) const {
  const FlightOrigin& origin = settings.flight_record->origin();
  const CodedText reason = split_code(info.reason);
  const Json document{{"format", kStatisticsFormat},
                      {"job", origin.job},
                      {"group", origin.group},
                      {"host", origin.host},
                      {"ranks", origin.nranks},
                      {"ended_at", calendar_now()},
                      {"seconds", seconds(transport::Clock::now() - began_)},
                      {"seconds_in_collectives", seconds(calls.busy)},
                      {"calls", calls.called},
                      {"operations", info.operations},
                      {"bytes",
                       {{"in_network", info.bytes_in_network},
                        {"between_ranks", info.bytes_fallback},
                        {"in_shared_memory", info.bytes_local}}},
                      {"last_path", path_of(info)},
                      {"reason", reason.sentence},
                      {"code", code_of(reason.reason)},
                      {"reasons", reasons_json(settings.flight_record->numbers().reasons)},
                      {"trees",
                       {{"lanes", info.lanes},
                        {"levels", info.levels},
                        {"lost", info.failovers},
                        {"returns", info.returns},
                        {"longest_pause_seconds", seconds(std::chrono::microseconds(info.longest_pause_us))}}},
                      {"late", late_},
                      {"quicker", to_json(quicker_calls(calls, settings, info))},
                      {"failure", calls.failure}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> StatisticsFile::write(const CommunicatorSettings& settings, const CommunicatorInfo& info) const {
  if (folder_.empty() || !settings.flight_record || settings.rank != 0) return std::string();
  const FlightOrigin& origin = settings.flight_record->origin();
  const auto calls = settings.flight_record->snapshot();
  if (calls.called == 0) return std::string();
  std::string path = folder_ + "/" + service::file_name_of(origin.job) + "-" + origin.group + "-statistics.json";
  if (const Status ok = service::write_whole_file(path, text_of(calls, settings, info), 0600); !ok)
    return fail(Errc::io, "the statistics were not written to " + path + ": " + ok.error().message);
  return path;
}

}  // namespace tributary::client
