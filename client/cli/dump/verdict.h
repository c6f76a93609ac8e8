#pragma once
// Compares the flight records of a group's ranks: which operation does not end, and for which ranks it waits.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/dump/records.h"

namespace tributary::cli {

using Ranks = std::vector<std::uint32_t>;

struct Verdict {
  /// The first operation that has not ended on some rank; no value: every operation that was called has ended.
  std::optional<std::uint64_t> operation;
  std::string call;         // the call that a waiting rank made
  double wait_seconds = 0;  // time since the first waiting rank called it
  Ranks not_called, waiting, ended;
  Ranks calls_otherwise;  // waiting ranks that made another call under this number
  Ranks no_record;        // ranks of the group whose record was not found

  /// Returns whether others wait for this rank: it has not called the operation, or has called another one.
  [[nodiscard]] bool is_late(std::uint32_t rank) const noexcept {
    const auto has = [rank](const Ranks& ranks) { return std::ranges::find(ranks, rank) != ranks.end(); };
    return has(not_called) || has(calls_otherwise);
  }
};
[[nodiscard]] Verdict verdict_on(const GroupRecord& group);
/// Returns lines for people.
[[nodiscard]] std::string to_text(const Verdict& verdict, const GroupRecord& group);
/// Below this wait, a rank that has not called is between two calls like any rank of a job that runs.
inline constexpr double kLateAfterSeconds = 0.1;
/// Returns only the lines about ranks for which others have waited so long, and about ranks without a record; empty:
/// there are none.
[[nodiscard]] std::string late_text(const Verdict& verdict, const GroupRecord& group);
[[nodiscard]] nlohmann::json to_json(const Verdict& verdict);

/// Returns a text such as "rank 3" or "ranks 0-2, 7".
[[nodiscard]] std::string ranks_text(const Ranks& ranks);

}  // namespace tributary::cli
