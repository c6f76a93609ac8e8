#include "client/cli/dump/records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

std::optional<std::int64_t> time_in(const json& object, const char* key) {
  const json& value = object.at(key);
  if (value.is_null()) return std::nullopt;
  return value.get<std::int64_t>();
}

/// The same for a key that an older library does not write.
std::optional<std::int64_t> new_time_in(const json& object, const char* key) {
  return object.contains(key) ? time_in(object, key) : std::nullopt;
}

OperationRecord operation_of(const json& object) {
  return {.number = object.at("number").get<std::uint64_t>(),
          .call = object.at("call").get<std::string>(),
          .collective = object.at("collective").get<std::string>(),
          .dtype = object.at("dtype").get<std::string>(),
          .count = object.at("count").get<std::uint64_t>(),
          .bytes = object.at("bytes").get<std::uint64_t>(),
          .path = object.at("path").get<std::string>(),
          .outcome = object.at("outcome").get<std::string>(),
          .queued = time_in(object, "queued_ns"),
          .started = time_in(object, "started_ns"),
          .first_byte = new_time_in(object, "first_byte_ns"),
          .last_byte = new_time_in(object, "last_byte_ns"),
          .ended = time_in(object, "ended_ns")};
}

void add(GroupRecords& groups, const json& object, std::int64_t pid, std::int64_t taken) {
  const auto job = object.at("job").get<std::string>();
  const auto name = object.at("group").get<std::string>();
  RankRecord record{.rank = object.at("rank").get<std::uint32_t>(),
                    .pid = pid,
                    .taken = taken,
                    .host = object.at("host").get<std::string>(),
                    .called = object.at("called").get<std::uint64_t>(),
                    .failure = object.at("failure").get<std::string>(),
                    .operations = {}};
  for (const json& operation : object.at("operations")) record.operations.push_back(operation_of(operation));
  std::ranges::sort(record.operations, {}, &OperationRecord::number);
  GroupRecord& group = groups[{job, name}];
  group.job = job;
  group.group = name;
  group.ranks = object.at("ranks").get<std::uint32_t>();
  const std::uint32_t rank = record.rank;
  group.by_rank.insert_or_assign(rank, std::move(record));
}

json json_of(const OperationRecord& o) {
  const auto time = [](const std::optional<std::int64_t>& at) { return at ? json(*at) : json(); };
  return {{"number", o.number},
          {"call", o.call},
          {"collective", o.collective},
          {"dtype", o.dtype},
          {"count", o.count},
          {"bytes", o.bytes},
          {"path", o.path},
          {"outcome", o.outcome},
          {"queued_ns", time(o.queued)},
          {"started_ns", time(o.started)},
          {"first_byte_ns", time(o.first_byte)},
          {"last_byte_ns", time(o.last_byte)},
          {"ended_ns", time(o.ended)}};
}

}  // namespace

const OperationRecord* RankRecord::first_open() const noexcept {
  const auto found = std::ranges::find_if(operations, [](const OperationRecord& o) { return !o.succeeded(); });
  return found == operations.end() ? nullptr : &*found;
}

const OperationRecord* RankRecord::find(std::uint64_t number) const noexcept {
  const auto found = std::ranges::find(operations, number, &OperationRecord::number);
  return found == operations.end() ? nullptr : &*found;
}

Status add_document(GroupRecords& groups, const std::string& document) {
  try {
    const json read = json::parse(document);
    const int format = read.at("format").get<int>();
    if (format != kFormat)
      return fail(Errc::bad_argument, "the record has form " + std::to_string(format) +
                                          ", and this program reads form " + std::to_string(kFormat) +
                                          ": use the library's version of tributary");
    const auto pid = read.at("pid").get<std::int64_t>();
    const auto taken = read.at("time_ns").get<std::int64_t>();
    for (const json& communicator : read.at("communicators")) add(groups, communicator, pid, taken);
  } catch (const json::exception& error) {
    return fail(Errc::bad_argument, std::string("no flight record: ") + error.what());
  }
  return {};
}

json to_json(const RankRecord& record) {
  json operations = json::array();
  for (const OperationRecord& o : record.operations) operations.push_back(json_of(o));
  return {{"rank", record.rank},
          {"pid", record.pid},
          {"host", record.host},
          {"time_ns", record.taken},
          {"called", record.called},
          {"failure", record.failure},
          {"operations", std::move(operations)}};
}

}  // namespace tributary::cli
