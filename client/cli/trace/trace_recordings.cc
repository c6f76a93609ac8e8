#include "client/cli/trace/trace_recordings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr int kRecordingsFormat = 1;

json to_json(const std::vector<TraceDocument>& documents) {
  json list = json::array();
  for (const TraceDocument& one : documents) {
    json parsed = json::parse(one.text, nullptr, false);
    if (!parsed.is_discarded()) list.push_back({{"from", one.from}, {"document", std::move(parsed)}});
  }
  return list;
}

std::vector<TraceDocument> documents_in(const json& list) {
  std::vector<TraceDocument> documents;
  for (const json& one : list)
    documents.push_back({.from = one.at("from").get<std::string>(), .text = one.at("document").dump()});
  return documents;
}

TraceRecordings recordings_in(const json& document) {
  if (const int format = document.at("format").get<int>(); format != kRecordingsFormat)
    throw json::other_error::create(0, "it has form " + std::to_string(format), nullptr);
  return {.job = document.at("job").get<std::string>(),
          .ago = document.at("ago_ns").get<std::int64_t>(),
          .ranks = documents_in(document.at("ranks")),
          .aggregators = documents_in(document.at("aggregators"))};
}

void move_to(std::vector<TraceDocument>& to, std::vector<TraceDocument>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Leaves one of the recordings of each rank, and of each aggregator: a file may be given twice.
template <class Recorded, class Name>
void leave_one_of_each(std::vector<Recorded>& all, Name name) {
  std::set<std::invoke_result_t<Name, const Recorded&>> seen;
  std::erase_if(all, [&](const Recorded& one) { return !seen.insert(name(one)).second; });
}

}  // namespace

std::string to_json(const TraceRecordings& recordings) {
  const json document{{"format", kRecordingsFormat},
                      {"job", recordings.job},
                      {"ago_ns", recordings.ago},
                      {"ranks", to_json(recordings.ranks)},
                      {"aggregators", to_json(recordings.aggregators)}};
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Status add_recordings(TraceRecordings& to, const std::string& text) {
  try {
    TraceRecordings read = recordings_in(json::parse(text));
    if (to.job.empty()) to.job = read.job;
    if (to.job != read.job)
      return fail(Errc::bad_argument, "it is of job '" + read.job + "', and another file of job '" + to.job + "'");
    to.ago = std::max(to.ago, read.ago);
    move_to(to.ranks, std::move(read.ranks));
    move_to(to.aggregators, std::move(read.aggregators));
  } catch (const json::exception& error) {
    return fail(Errc::bad_argument, std::string("it has no recordings of a trace: ") + error.what());
  }
  return {};
}

TraceParts parts_of(const TraceRecordings& recordings, std::vector<std::string>& troubles) {
  TraceParts parts;
  for (const TraceDocument& one : recordings.ranks) {
    if (const Status added = add_ranks(parts, one.text); !added)
      troubles.push_back(one.from + ": " + added.error().message);
  }
  for (const TraceDocument& one : recordings.aggregators) {
    if (const Status added = add_aggregator(parts, one.text); !added)
      troubles.push_back(one.from + ": " + added.error().message);
  }
  std::erase_if(parts.ranks, [&](const TracedRank& rank) { return rank.job != recordings.job; });
  leave_one_of_each(parts.ranks, [](const TracedRank& rank) { return std::pair(rank.group, rank.rank); });
  leave_one_of_each(parts.aggregators, [](const TracedAggregator& aggregator) { return aggregator.name; });
  std::ranges::sort(parts.ranks, {}, [](const TracedRank& rank) { return std::pair(rank.rank, rank.group); });
  return parts;
}

}  // namespace tributary::cli
