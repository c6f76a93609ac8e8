#include "client/cli/dump/verdict.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kFailureBytesMax = 400;

double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(std::max<std::int64_t>(nanoseconds, 0)) / 1e9;
}

std::string seconds_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", value);
  return text;
}

/// Returns the smallest number of an operation that has not ended on its rank.
std::optional<std::uint64_t> first_open(const GroupRecord& group) {
  std::optional<std::uint64_t> first;
  for (const auto& [rank, record] : group.by_rank) {
    const OperationRecord* const open = record.first_open();
    if (open != nullptr && (!first || open->number < *first)) first = open->number;
  }
  return first;
}

void place(Verdict& verdict, const RankRecord& record) {
  const std::uint64_t number = *verdict.operation;
  if (record.called <= number) return verdict.not_called.push_back(record.rank);
  const OperationRecord* const operation = record.find(number);
  if (operation == nullptr || operation->succeeded()) return verdict.ended.push_back(record.rank);
  verdict.waiting.push_back(record.rank);
  if (verdict.call.empty()) verdict.call = operation->call;
  if (operation->call != verdict.call) verdict.calls_otherwise.push_back(record.rank);
  const std::int64_t until = operation->ended.value_or(record.taken);
  verdict.wait_seconds = std::max(verdict.wait_seconds, seconds(until - operation->queued.value_or(until)));
}

std::string last_call(const RankRecord& record) {
  if (record.called == 0) return "it has made no call";
  const OperationRecord* const last = record.find(record.called - 1);
  std::string text = "its last call was operation " + std::to_string(record.called - 1);
  if (last == nullptr) return text;
  text += " (" + last->call + ")";
  if (last->ended) text += ", which ended " + seconds_text(seconds(record.taken - *last->ended)) + " ago";
  return text;
}

void add_failures(std::string& text, const GroupRecord& group) {
  for (const auto& [rank, record] : group.by_rank) {
    if (record.failure.empty()) continue;
    text += "  rank " + std::to_string(rank) + " has failed: " + record.failure.substr(0, kFailureBytesMax) + "\n";
  }
}

}  // namespace

std::string ranks_text(const Ranks& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (first == 0 ? "" : ", ") + std::to_string(ranks[first]);
    if (last > first) text += "-" + std::to_string(ranks[last]);
    first = last + 1;
  }
  return text;
}

Verdict verdict_on(const GroupRecord& group) {
  Verdict verdict;
  for (std::uint32_t rank = 0; rank < group.ranks; ++rank) {
    if (!group.by_rank.contains(rank)) verdict.no_record.push_back(rank);
  }
  verdict.operation = first_open(group);
  if (!verdict.operation) return verdict;
  for (const auto& [rank, record] : group.by_rank) place(verdict, record);
  return verdict;
}

namespace {

std::string group_name(const GroupRecord& group) {
  return "job " + group.job + ", group " + group.group + ": ";
}

std::string operation_line(const Verdict& v) {
  return "  operation " + std::to_string(*v.operation) + " (" + v.call + ") has not ended after " +
         seconds_text(v.wait_seconds) + "\n";
}

std::string late_lines(const Verdict& v, const GroupRecord& group) {
  std::string text;
  for (const std::uint32_t rank : v.not_called)
    text += "  rank " + std::to_string(rank) + " has not called it; " + last_call(group.by_rank.at(rank)) + "\n";
  for (const std::uint32_t rank : v.calls_otherwise)
    text += "  rank " + std::to_string(rank) +
            " called another operation in its place: " + group.by_rank.at(rank).find(*v.operation)->call + "\n";
  return text;
}

std::string no_record_line(const Verdict& v) {
  if (v.no_record.empty()) return {};
  return "  no record of " + ranks_text(v.no_record) + ": on another host, ended, stopped, or without a status port\n";
}

}  // namespace

std::string to_text(const Verdict& v, const GroupRecord& group) {
  std::string text = group_name(group) + std::to_string(group.ranks) + " ranks, " +
                     std::to_string(group.by_rank.size()) + " of them found\n" + no_record_line(v);
  add_failures(text, group);
  if (!v.operation) return text + "  every operation that was called has ended\n";
  text += operation_line(v) + late_lines(v, group);
  text += "  " + ranks_text(v.waiting) + (v.waiting.size() == 1 ? " waits" : " wait") + "\n";
  if (!v.ended.empty()) text += "  it has ended on " + ranks_text(v.ended) + "\n";
  return text;
}

std::string late_text(const Verdict& v, const GroupRecord& group) {
  if (!v.operation || (v.wait_seconds < kLateAfterSeconds && v.calls_otherwise.empty())) return {};
  const std::string lines = late_lines(v, group) + no_record_line(v);
  if (lines.empty()) return {};
  return group_name(group) + ranks_text(v.waiting) + (v.waiting.size() == 1 ? " waits" : " wait") + "\n" +
         operation_line(v) + lines;
}

json to_json(const Verdict& v) {
  return {{"operation", v.operation ? json(*v.operation) : json()},
          {"call", v.call},
          {"wait_seconds", v.wait_seconds},
          {"not_called", v.not_called},
          {"waiting", v.waiting},
          {"ended", v.ended},
          {"calls_otherwise", v.calls_otherwise},
          {"no_record", v.no_record}};
}

}  // namespace tributary::cli
