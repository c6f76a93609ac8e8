#include "client/api/rank_figures.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/api/flight_report.h"

namespace tributary::client {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFiguresFormat = 1;

Json json_of(const OperationNumbers::Histogram& histogram) {
  return {{"counts", histogram.counts}, {"sum_ns", histogram.sum_ns}};
}

Json operations_json(const OperationNumbers& numbers) {
  Json list = Json::array();
  for (std::size_t collective = 0; collective < numbers.operations.size(); ++collective) {
    for (std::size_t size = 0; size < OperationNumbers::kSizes; ++size) {
      const auto& histogram = numbers.operations[collective][size];
      if (histogram.empty()) continue;
      Json one{{"collective", to_string(static_cast<Collective>(collective))}, {"size", size}};
      one.update(json_of(histogram));
      list.push_back(std::move(one));
    }
  }
  return list;
}

Json bytes_json(const OperationNumbers& numbers) {
  Json bytes = Json::object();
  for (const auto path :
       {FlightPath::in_network, FlightPath::between_ranks, FlightPath::by_hosts, FlightPath::shared_memory})
    bytes[std::string(word_of(path))] = numbers.bytes[static_cast<std::size_t>(path)];
  return bytes;
}

Json json_of(const ValueNumbers::Buffer& buffer) {
  return {{"elements", buffer.elements},
          {"nan", buffer.found.nans},
          {"infinity", buffer.found.infinities},
          {"subnormal", buffer.found.subnormals}};
}

Json json_of(const ReasonNumbers& reasons) {
  Json list = Json::object();
  reasons.for_each([&list](std::string_view code, std::uint64_t count) { list[std::string(code)] = count; });
  return list;
}

Json bounds_json() {
  Json times = Json::array(), sizes = Json::array();
  for (std::size_t i = 0; i + 1 < OperationNumbers::kTimes; ++i) times.push_back(OperationNumbers::upper_us(i));
  for (std::size_t i = 0; i + 1 < OperationNumbers::kSizes; ++i) sizes.push_back(OperationNumbers::upper_bytes(i));
  return {{"us", std::move(times)}, {"bytes", std::move(sizes)}};
}

/// Returns for how long the oldest open operation has been open.
std::chrono::nanoseconds longest_open(const FlightRecord::Snapshot& record, transport::TimePoint now) {
  const auto open = std::ranges::find(record.entries, FlightOutcome::open, &FlightEntry::outcome);
  if (open == record.entries.end() || !open->queued) return {};
  return std::max(std::chrono::nanoseconds{}, std::chrono::nanoseconds(now - *open->queued));
}

}  // namespace

void RankFigures::ended(const FlightRecord& record) {
  ended_ += record.numbers();
  calls_ended_ += record.snapshot().called;
}

std::string RankFigures::json(const std::vector<std::shared_ptr<const FlightRecord>>& records) const {
  OperationNumbers numbers = ended_;
  std::uint64_t calls = calls_ended_;
  std::chrono::nanoseconds open{};
  const transport::TimePoint now = transport::Clock::now();
  for (const auto& record : records) {
    const auto snapshot = record->snapshot();
    numbers += record->numbers();
    calls += snapshot.called;
    open = std::max(open, longest_open(snapshot, now));
  }
  const FlightOrigin origin = origin_.value_or(FlightOrigin{});
  const Json document{
      {"format", kFiguresFormat},
      {"pid", ::getpid()},
      {"job", origin.job},
      {"host", origin.host},
      {"rank", origin.rank},
      {"communicators", records.size()},
      {"calls", calls},
      {"failures", numbers.failures},
      {"open_ns", open.count()},
      {"bounds", bounds_json()},
      {"operations", operations_json(numbers)},
      {"bytes", bytes_json(numbers)},
      {"pauses", json_of(numbers.pauses)},
      {"reasons", json_of(numbers.reasons)},
      {"values", {{"input", json_of(numbers.values.input)}, {"result", json_of(numbers.values.result)}}}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tributary::client
