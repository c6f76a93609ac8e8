#include "client/cli/trace/trace_command.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <thread>

#include "client/cli/dump/ports.h"
#include "client/cli/dump/records.h"
#include "client/cli/otlp/sender.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "client/cli/trace/aggregator_traces.h"
#include "client/cli/trace/alignment.h"
#include "client/cli/trace/chrome_trace.h"
#include "client/cli/trace/missing_ranks.h"
#include "client/cli/trace/otlp_spans.h"
#include "client/cli/trace/trace_parts.h"
#include "client/cli/trace/trace_recordings.h"
#include "service-kit/status_folder.h"

namespace tributary::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kReadLimit{10};  // an answer may have megabytes
// Aggregators may begin late, and then record for the whole time. The ranks record until the command takes their
// answers, or for this time longer if the command ends.
constexpr std::chrono::milliseconds kRanksLonger{10'000};

void tell(const std::string& sentence) {
  std::fprintf(stderr, "tributary trace: %s\n", printable(sentence).c_str());
}

/// A job's ranks on this machine.
struct JobPorts {
  std::string job;
  std::vector<std::string> ports;
};

/// Finds the ports of the job, or of the only job.
Result<JobPorts> find_ports(const TraceOptions& options) {
  const std::string folder = status_folder(options.folder);
  const auto all = ports_in(folder);
  if (!all) return fail(Errc::io, all.error().message + "; --dir names the folder of the ranks' status ports");
  std::map<std::string, std::set<std::string>> by_job;
  for (const PortAnswer& answer : ask_ports(*all, "calls json\n")) {
    GroupRecords records;
    const Status read = answer.trouble.empty() ? add_document(records, answer.text) : fail(Errc::io, answer.trouble);
    if (!read) tell("no answer from " + answer.port + ": " + read.error().message);
    for (const auto& [key, group] : records) by_job[key.first].insert(answer.port);
  }
  const auto found = options.job.empty() ? by_job.begin() : by_job.find(options.job);
  if (found == by_job.end())
    return fail(Errc::io, "no rank" + (options.job.empty() ? "" : " of job '" + options.job + "'") +
                              " has a status port in " + folder);
  if (options.job.empty() && by_job.size() > 1) {
    std::string names;
    for (const auto& [job, ports] : by_job) names += (names.empty() ? "" : ", ") + job;
    return fail(Errc::bad_argument, "several jobs run on this machine: --job names one of them: " + names);
  }
  return JobPorts{.job = found->first, .ports = {found->second.begin(), found->second.end()}};
}

JobPlaces find_places(const TraceOptions& options, const std::string& job) {
  auto places = ask_places(options.manager, job);
  if (places) return std::move(*places);
  tell("the trace has no aggregators: " + places.error().message);
  return {};
}

/// Begins at the ports, and removes those that record nothing.
void begin_at(JobPorts& job, double seconds) {
  const auto time = kRanksLonger + std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  std::vector<std::string> recording;
  for (const PortAnswer& answer : ask_ports(job.ports, fmt::format("trace begin {}\n", time.count()))) {
    if (answer.text == "recording\n") {
      recording.push_back(answer.port);
    } else {
      tell("no trace from " + answer.port + ": " +
           (answer.trouble.empty() ? answer.text.substr(0, answer.text.find('\n')) : answer.trouble));
    }
  }
  job.ports = std::move(recording);
}

void take_from(const JobPorts& job, std::vector<TraceDocument>& documents) {
  for (PortAnswer& answer : ask_ports(job.ports, "trace json\n", kReadLimit)) {
    if (answer.trouble.empty()) {
      documents.push_back({.from = answer.port, .text = std::move(answer.text)});
    } else {
      tell("no trace from " + answer.port + ": " + answer.trouble);
    }
  }
}

std::vector<std::string> lost_lines(const TraceParts& parts) {
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& who, std::uint64_t operations, std::uint64_t moments) {
    if (operations + moments == 0) return;
    lines.push_back(who + " had no place for the last " + std::to_string(operations) + " operations and " +
                    std::to_string(moments) + " moments of segments and messages: ask for a shorter time");
  };
  for (const TracedRank& rank : parts.ranks)
    add("rank " + std::to_string(rank.rank), rank.operations_lost, rank.segments_lost);
  for (const TracedAggregator& aggregator : parts.aggregators)
    add("aggregator " + aggregator.name, 0, aggregator.segments_lost);
  return lines;
}

Status send_spans(const std::string& url, const TraceParts& parts) {
  auto collector = OtlpSender::open(url);
  if (!collector) return std::unexpected(collector.error());
  return otlp_spans(parts, [&](const std::string& document) { return collector->send("traces", document); });
}

/// Writes the file, and sends the operations to a collector if there is one. `ago`: nanoseconds since the trace began.
Status write_trace(const std::string& path, TraceParts& parts, std::int64_t ago, const std::string& otlp) {
  const SegmentWays ways(parts);
  const auto offsets = offsets_of(parts, ways);
  std::vector<std::string> notes = clock_lines(parts, offsets);
  std::ranges::copy(lost_lines(parts), std::back_inserter(notes));
  shift(parts, offsets);
  const std::int64_t from = parts.clocks[parts.ranks.front().clock].steady - ago;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const ChromeCounts counts = write_chrome_trace(out, parts, ways, from, notes);
  out.close();
  if (!out) return fail(Errc::io, path + " cannot be written");
  std::printf("ranks: %zu, aggregators: %zu, operations: %zu, segments: %zu, messages: %zu\n", parts.ranks.size(),
              parts.aggregators.size(), counts.operations, counts.segments, counts.messages);
  for (const std::string& note : notes) std::printf("%s\n", printable(note).c_str());
  std::printf("the trace is in %s: open it at https://ui.perfetto.dev or in chrome://tracing\n", path.c_str());
  return otlp.empty() ? Status() : send_spans(otlp, parts);
}

/// Writes the trace of the recordings. `places`: what the manager knows about the job; empty: nothing.
Status write_merged(const TraceOptions& options, const TraceRecordings& recordings, const JobPlaces& places) {
  std::vector<std::string> troubles;
  TraceParts parts = parts_of(recordings, troubles);
  for (const std::string& sentence : troubles) tell("no trace of " + sentence);
  if (parts.ranks.empty()) return fail(Errc::io, "job '" + recordings.job + "' has ended");
  for (const std::string& sentence : missing_ranks(parts.ranks, places)) tell("no trace of " + sentence);
  const std::string standard = "trace-" + service::file_name_of(recordings.job) + ".json";
  return write_trace(options.into.empty() ? standard : options.into, parts, recordings.ago, options.otlp);
}

Status write_parts(const std::string& path, const TraceRecordings& recordings) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << to_json(recordings);
  out.close();
  if (!out) return fail(Errc::io, path + " cannot be written");
  std::printf("the recordings of %zu processes of ranks and %zu aggregators are in %s\n", recordings.ranks.size(),
              recordings.aggregators.size(), path.c_str());
  return {};
}

Status merge(const TraceOptions& options) {
  TraceRecordings recordings{.job = options.job, .ranks = {}, .aggregators = {}};
  for (const std::string& path : options.merged) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in.is_open()) return fail(Errc::io, path + " cannot be read");
    if (const Status added = add_recordings(recordings, text); !added)
      return fail(Errc::bad_argument, path + ": " + added.error().message);
  }
  return write_merged(options, recordings, {});
}

/// Records, and writes the file that the options ask for.
Status record(const TraceOptions& options) {
  auto job = find_ports(options);
  if (!job) return std::unexpected(job.error());
  const JobPlaces places = find_places(options, job->job);
  AggregatorTraces aggregators(places.aggregators);
  const auto begun = Clock::now();
  begin_at(*job, options.seconds);
  if (job->ports.empty()) return fail(Errc::io, "no process of job '" + job->job + "' records");
  aggregators.begin(job->job, options.seconds);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  TraceRecordings recordings{.job = job->job, .ranks = {}, .aggregators = {}};
  take_from(*job, recordings.ranks);
  recordings.ago = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
  aggregators.take(recordings.aggregators);
  for (const std::string& sentence : aggregators.troubles()) tell("no trace of " + sentence);
  return options.parts.empty() ? write_merged(options, recordings, places) : write_parts(options.parts, recordings);
}

}  // namespace

int trace(const TraceOptions& options) {
  const Status written = options.merged.empty() ? record(options) : merge(options);
  if (written) return kExitGood;
  tell(written.error().message);
  return exit_code_of(written.error().code);
}

}  // namespace tributary::cli
