#include "client/cli/trace/trace_command.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <thread>

#include "client/cli/dump/ports.h"
#include "client/cli/dump/records.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"
#include "client/cli/trace/aggregator_traces.h"
#include "client/cli/trace/alignment.h"
#include "client/cli/trace/chrome_trace.h"
#include "client/cli/trace/job_places.h"
#include "client/cli/trace/trace_parts.h"
#include "service-kit/status_folder.h"

namespace tributary::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kReadLimit{10};  // an answer may have megabytes

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
  const auto time = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
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

void take_from(const JobPorts& job, TraceParts& parts) {
  for (const PortAnswer& answer : ask_ports(job.ports, "trace json\n", kReadLimit)) {
    const Status added = answer.trouble.empty() ? add_ranks(parts, answer.text) : fail(Errc::io, answer.trouble);
    if (!added) tell("no trace from " + answer.port + ": " + added.error().message);
  }
  std::erase_if(parts.ranks, [&job](const TracedRank& rank) { return rank.job != job.job; });
  std::ranges::sort(parts.ranks, {}, [](const TracedRank& rank) { return std::pair(rank.rank, rank.group); });
}

std::vector<std::string> lost_lines(const TraceParts& parts) {
  std::vector<std::string> lines;
  const auto add = [&lines](const std::string& who, std::uint64_t operations, std::uint64_t moments) {
    if (operations + moments == 0) return;
    lines.push_back(who + " had no place for the last " + std::to_string(operations) + " operations and " +
                    std::to_string(moments) + " moments of segments: ask for a shorter time");
  };
  for (const TracedRank& rank : parts.ranks)
    add("rank " + std::to_string(rank.rank), rank.operations_lost, rank.segments_lost);
  for (const TracedAggregator& aggregator : parts.aggregators)
    add("aggregator " + aggregator.name, 0, aggregator.segments_lost);
  return lines;
}

/// Writes the file. `ago`: time since the trace began.
Status write_file(const std::string& path, TraceParts& parts, Clock::duration ago) {
  const SegmentWays ways(parts);
  const auto offsets = offsets_of(parts, ways);
  std::vector<std::string> notes = clock_lines(parts, offsets);
  std::ranges::copy(lost_lines(parts), std::back_inserter(notes));
  shift(parts, offsets);
  const std::int64_t from = parts.clocks[parts.ranks.front().clock].steady -
                            std::chrono::duration_cast<std::chrono::nanoseconds>(ago).count();
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const ChromeCounts counts = write_chrome_trace(out, parts, ways, from, notes);
  out.close();
  if (!out) return fail(Errc::io, path + " cannot be written");
  std::printf("ranks: %zu, aggregators: %zu, operations: %zu, segments: %zu\n", parts.ranks.size(),
              parts.aggregators.size(), counts.operations, counts.segments);
  for (const std::string& note : notes) std::printf("%s\n", printable(note).c_str());
  std::printf("the trace is in %s: open it at https://ui.perfetto.dev or in chrome://tracing\n", path.c_str());
  return {};
}

}  // namespace

int trace(const TraceOptions& options) {
  auto job = find_ports(options);
  if (!job) {
    tell(job.error().message);
    return exit_code_of(job.error().code);
  }
  const JobPlaces places = find_places(options, job->job);
  AggregatorTraces aggregators(places.aggregators);
  const auto begun = Clock::now();
  begin_at(*job, options.seconds);
  if (job->ports.empty()) return kExitFailed;
  aggregators.begin(job->job, options.seconds);
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  TraceParts parts;
  take_from(*job, parts);
  const auto ago = Clock::now() - begun;
  if (parts.ranks.empty()) {
    tell("job '" + job->job + "' has ended");
    return kExitFailed;
  }
  aggregators.take(parts);
  for (const std::string& sentence : aggregators.troubles()) tell("no trace of " + sentence);
  for (const std::string& sentence : missing_ranks(parts.ranks, places)) tell("no trace of " + sentence);
  const std::string path = options.into.empty() ? "trace-" + service::file_name_of(job->job) + ".json" : options.into;
  const Status written = write_file(path, parts, ago);
  if (written) return kExitGood;
  tell(written.error().message);
  return kExitFailed;
}

}  // namespace tributary::cli
