#include "client/cli/dump/fr_trace.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "service-kit/status_folder.h"
#include "tributary/protocol/assert.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

constexpr const char* kVersion = "2.10";
constexpr const char* kGroupName = "0";

json sizes(std::uint64_t count) {
  return json::array({json::array({count})});
}

/// The analyzer knows a fixed list of names, and a barrier as an all_reduce of its own kind.
std::string profiling_name(const OperationRecord& o) {
  return "nccl:" + (o.collective == "barrier" ? "all_reduce_barrier" : o.collective);
}

std::string state_of(const OperationRecord& o) {
  if (o.succeeded()) return "completed";
  return o.started ? "started" : "scheduled";
}

json entry_of(const GroupRecord& group, const OperationRecord& o) {
  const bool gathers = o.collective == "all_gather" || o.collective == "gather";
  const bool scatters = o.collective == "reduce_scatter" || o.collective == "scatter";
  const auto time = [](const std::optional<std::int64_t>& at) { return at ? json(*at) : json(); };
  const json dtypes = json::array({o.dtype});
  return {{"record_id", o.number},
          {"pg_id", 0},
          {"process_group", json::array({kGroupName, group.job})},
          {"collective_seq_id", o.number},
          {"p2p_seq_id", 0},
          {"op_id", o.number},
          {"profiling_name", profiling_name(o)},
          {"time_created_ns", o.queued.value_or(0)},
          {"time_discovered_started_ns", time(o.started)},
          {"time_discovered_completed_ns", o.succeeded() ? time(o.ended) : json()},
          {"input_sizes", sizes(scatters ? o.count * group.ranks : o.count)},
          {"output_sizes", sizes(gathers ? o.count * group.ranks : o.count)},
          {"input_dtypes", dtypes},
          {"output_dtypes", dtypes},
          {"state", state_of(o)},
          {"retired", o.succeeded()},
          {"is_p2p", false},
          {"timeout_ms", 0},
          {"frames", json::array()}};
}

std::string rank_list(std::uint32_t ranks) {
  std::string list = "[";
  for (std::uint32_t rank = 0; rank < ranks; ++rank) list += (rank == 0 ? "" : ", ") + std::to_string(rank);
  return list + "]";
}

void pickle(const json& value, std::string& out);

/// Writes a text with the escapes of protocol 0. Other characters than those of ASCII become question marks.
void pickle_text(const std::string& text, std::string& out) {
  out += 'V';
  for (const char c : text) {
    if (c == '\\' || c == '\n' || c == '\r' || c == '\0') {
      constexpr std::string_view digits = "0123456789abcdef";
      const auto code = static_cast<unsigned char>(c);
      out += std::string("\\u00") + digits[code >> 4] + digits[code & 15];
    } else {
      out += static_cast<unsigned char>(c) < 0x80 ? c : '?';
    }
  }
  out += '\n';
}

void pickle_members(const json& value, std::string& out) {
  out += value.is_object() ? "(d" : "(l";
  for (const auto& [key, member] : value.items()) {
    if (value.is_object()) pickle_text(key, out);
    pickle(member, out);
    out += value.is_object() ? 's' : 'a';
  }
}

void pickle(const json& value, std::string& out) {
  if (value.is_object() || value.is_array()) return pickle_members(value, out);
  if (value.is_string()) return pickle_text(value.get<std::string>(), out);
  if (value.is_null()) {
    out += 'N';
  } else if (value.is_boolean()) {
    out += value.get<bool>() ? "I01\n" : "I00\n";
  } else {
    TRIBUTARY_ASSERT(value.is_number_integer(), "a document for the analyzer has a value of type {}",
                     value.type_name());
    out += "I" + value.dump() + "\n";
  }
}

}  // namespace

json fr_document(const GroupRecord& group, const RankRecord& record) {
  json entries = json::array();
  std::int64_t enqueued = -1, started = -1, completed = -1;
  for (const OperationRecord& o : record.operations) {
    entries.push_back(entry_of(group, o));
    const auto number = static_cast<std::int64_t>(o.number);
    enqueued = number;
    if (o.started) started = number;
    if (o.succeeded()) completed = number;
  }
  const json config{{"name", kGroupName}, {"desc", group.job}, {"ranks", rank_list(group.ranks)}};
  const json status{{"last_enqueued_collective", enqueued},
                    {"last_started_collective", started},
                    {"last_completed_collective", completed}};
  return {{"version", kVersion},
          {"entries", std::move(entries)},
          {"pg_config", {{kGroupName, config}}},
          {"pg_status", {{kGroupName, status}}}};
}

std::string to_pickle(const json& document) {
  std::string out;
  pickle(document, out);
  return out + '.';
}

Result<std::string> write_fr_files(const GroupRecords& groups, const std::string& into) {
  std::string text;
  for (const auto& [key, group] : groups) {
    const std::filesystem::path folder =
        std::filesystem::path(into) / (service::file_name_of(group.job) + "-" + service::file_name_of(group.group));
    std::error_code failed;
    std::filesystem::create_directories(folder, failed);
    if (failed) return fail(Errc::io, "--into: " + folder.string() + ": " + failed.message());
    for (const auto& [rank, record] : group.by_rank) {
      const auto path = folder / ("rank_" + std::to_string(rank));
      std::ofstream out(path, std::ios::binary | std::ios::trunc);
      out << to_pickle(fr_document(group, record));
      if (!out.flush()) return fail(Errc::io, "--into: " + path.string() + " cannot be written");
    }
    text += (text.empty() ? "" : "\n") + std::to_string(group.by_rank.size()) + " ranks of " +
            std::to_string(group.ranks) + ": " + folder.string();
  }
  return text;
}

}  // namespace tributary::cli
