#include "client/cli/dump/dump_command.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "client/cli/dump/aggregator_waits.h"
#include "client/cli/dump/fr_trace.h"
#include "client/cli/dump/gather.h"
#include "client/cli/dump/ports.h"
#include "client/cli/dump/verdict.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/table.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

/// Returns the time from `at` to the record, in seconds.
std::string age(const RankRecord& record, const std::optional<std::int64_t>& at) {
  if (!at) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(record.taken - *at) / 1e9);
  return text;
}

std::string table_of(const GroupRecord& group, std::uint32_t last) {
  Table table({"RANK", "PID", "CALLS", "NUMBER", "OPERATION", "PATH", "OUTCOME", "QUEUED (s ago)", "STARTED (s ago)",
               "FIRST BYTE (s ago)", "LAST BYTE (s ago)", "ENDED (s ago)"});
  for (const auto& [rank, record] : group.by_rank) {
    const std::size_t all = record.operations.size();
    for (std::size_t i = all - std::min<std::size_t>(all, last); i < all; ++i) {
      const OperationRecord& o = record.operations[i];
      table.add({std::to_string(rank), std::to_string(record.pid), std::to_string(record.called),
                 std::to_string(o.number), o.call, o.path, o.outcome, age(record, o.queued), age(record, o.started),
                 age(record, o.first_byte), age(record, o.last_byte), age(record, o.ended)});
    }
  }
  return table.text();
}

void print_text(const GroupRecords& groups, std::uint32_t last) {
  bool first = true;
  for (const auto& [key, group] : groups) {
    if (!std::exchange(first, false)) std::puts("");
    const std::string text = to_text(verdict_on(group), group);
    std::fputs(text.c_str(), stdout);
    if (last > 0) std::fputs(table_of(group, last).c_str(), stdout);
  }
}

void print_late(const GroupRecords& groups) {
  std::string text;
  for (const auto& [key, group] : groups) text += late_text(verdict_on(group), group);
  std::fputs(text.empty() ? "no operation has waited for a rank for 100 ms\n" : text.c_str(), stdout);
}

/// Asks the aggregators of the jobs in the records, if a manager is given.
AggregatorWaits waits_of(const GroupRecords& groups, const ManagerOptions& options) {
  AggregatorWaits waits;
  if (manager_url(options).empty()) return waits;
  std::set<std::string> jobs;
  for (const auto& [key, group] : groups) jobs.insert(group.job);
  for (const std::string& job : jobs) {
    const auto places = ask_places(options, job);
    if (!places) {
      waits.silent.push_back("aggregators of job '" + job + "': " + places.error().message);
      continue;
    }
    AggregatorWaits of_job = ask_what_aggregators_wait_for(places->aggregators, job);
    std::ranges::move(of_job.lanes, std::back_inserter(waits.lanes));
    std::ranges::move(of_job.silent, std::back_inserter(waits.silent));
  }
  return waits;
}

void tell_silent(const std::vector<std::string>& silent) {
  for (const std::string& sentence : silent)
    std::fprintf(stderr, "tributary dump: no record from %s\n", printable(sentence).c_str());
}

int save(const std::string& folder, const std::string& into) {
  std::vector<std::string> silent;
  const auto saved = save_records(folder, into, silent);
  tell_silent(silent);
  if (!saved) {
    std::fprintf(stderr, "tributary dump: %s\n", saved.error().message.c_str());
    return exit_code_of(saved.error().code);
  }
  std::printf("%zu records are in %s\n", *saved, into.c_str());
  return *saved > 0 ? kExitGood : kExitFailed;
}

void print_json(const Gathered& gathered, const AggregatorWaits& waits, bool only_late) {
  json groups = json::array();
  for (const auto& [key, group] : gathered.groups) {
    const Verdict verdict = verdict_on(group);
    if (only_late && late_text(verdict, group).empty()) continue;
    json ranks = json::array();
    for (const auto& [rank, record] : group.by_rank) {
      if (!only_late || verdict.is_late(rank)) ranks.push_back(to_json(record));
    }
    groups.push_back({{"job", group.job},
                      {"group", group.group},
                      {"ranks", group.ranks},
                      {"verdict", to_json(verdict)},
                      {"records", std::move(ranks)}});
  }
  std::vector<std::string> silent = gathered.silent;
  std::ranges::copy(waits.silent, std::back_inserter(silent));
  const json document{
      {"groups", std::move(groups)}, {"aggregators_wait", to_json(waits)}, {"without_record", std::move(silent)}};
  std::puts(document.dump(2, ' ', false, json::error_handler_t::replace).c_str());
}

int write_fr_trace(const GroupRecords& groups, const std::string& into) {
  const auto written = write_fr_files(groups, into);
  if (!written) {
    std::fprintf(stderr, "tributary dump: %s\n", written.error().message.c_str());
    return exit_code_of(written.error().code);
  }
  std::printf("%s\n", written->c_str());
  return kExitGood;
}

}  // namespace

int dump(const DumpOptions& options) {
  const std::string folder = status_folder(options.folder);
  if (!options.save.empty()) return save(folder, options.save);
  auto gathered = gather(folder, options.only_late ? Question::calls : Question::whole);
  if (!gathered) {
    std::fprintf(stderr, "tributary dump: %s; --dir names the folder of the ranks' status ports\n",
                 gathered.error().message.c_str());
    return kExitFailed;
  }
  if (!options.job.empty())
    std::erase_if(gathered->groups, [&](const auto& it) { return it.first.first != options.job; });
  if (options.form != DumpForm::json) tell_silent(gathered->silent);
  if (gathered->groups.empty()) {
    std::fprintf(stderr, "tributary dump: no rank%s has a status port or a record in %s\n",
                 options.job.empty() ? "" : (" of job '" + printable(options.job) + "'").c_str(), folder.c_str());
    return kExitFailed;
  }
  if (options.form == DumpForm::fr_trace) return write_fr_trace(gathered->groups, options.into);
  const AggregatorWaits waits = waits_of(gathered->groups, options.manager);
  if (options.form == DumpForm::json) {
    print_json(*gathered, waits, options.only_late);
    return kExitGood;
  }
  for (const std::string& sentence : waits.silent)
    std::fprintf(stderr, "tributary dump: no answer from %s\n", printable(sentence).c_str());
  options.only_late ? print_late(gathered->groups) : print_text(gathered->groups, options.last);
  std::fputs(to_text(waits).c_str(), stdout);
  return kExitGood;
}

}  // namespace tributary::cli
