#pragma once
// The flight records of the ranks, as `tributary dump` reads them from status ports and files.
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// One operation of one rank. Times are nanoseconds since 1970; a time without a value has not come.
struct OperationRecord {
  std::uint64_t number = 0;
  std::string call;  // "all_reduce of 1000 float32 (sum)": equal on all ranks that made the same call
  std::string collective, dtype;
  std::uint64_t count = 0, bytes = 0;
  std::string path;
  std::string outcome;  // open, success or failure
  std::optional<std::int64_t> queued, started, first_byte, last_byte, ended;

  [[nodiscard]] bool succeeded() const noexcept { return outcome == "success"; }
};

struct RankRecord {
  std::uint32_t rank = 0;
  std::int64_t pid = 0;
  std::int64_t taken = 0;  // time of the record
  std::string host;
  std::uint64_t called = 0;  // calls that the rank has made: their numbers are below this one
  std::string failure;       // empty: its communicator has not failed
  std::vector<OperationRecord> operations;

  /// Returns the first operation that has not succeeded; nullptr if there is none.
  [[nodiscard]] const OperationRecord* first_open() const noexcept;
  [[nodiscard]] const OperationRecord* find(std::uint64_t number) const noexcept;
};

struct GroupRecord {
  std::string job, group;
  std::uint32_t ranks = 0;                      // ranks of the whole group
  std::map<std::uint32_t, RankRecord> by_rank;  // the ranks whose records were found
};

/// The groups by job and name.
using GroupRecords = std::map<std::pair<std::string, std::string>, GroupRecord>;

/// Adds the communicators of one process's document. Errc::bad_argument: the document has another form.
[[nodiscard]] Status add_document(GroupRecords& groups, const std::string& document);
[[nodiscard]] nlohmann::json to_json(const RankRecord& record);

}  // namespace tributary::cli
