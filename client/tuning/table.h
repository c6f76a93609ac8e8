#pragma once
// A tuning table: rules by collective, ranks and size, and the figures that hold where no rule holds. It is a JSON
// file:
//
//   {
//     "format": "tributary-tuning-1",
//     "figures": {"message_us": 12.5, "hop_us": 18, ...},
//     "rules": [
//       {"collective": "all_reduce", "ranks": [4, 4], "bytes_max": 4096, "path": "ranks",
//        "algorithm": "recursive-doubling"},
//       {"collective": "all_reduce", "ranks": [4, 4], "bytes_max": null, "path": "tree", "algorithm": "ring"}
//     ],
//     "measured": [...]
//   }
//
// For an operation, the first rule holds that has its collective and number of ranks, and a bytes_max (null: no limit)
// of at least the operation's bytes. These are the bytes of the whole vector, the larger of the two buffers. The ranks
// use "algorithm" between them, by choice or if there is no tree. Every key of figures has a default. "measured" is for
// people.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/tuning/figures.h"
#include "client/tuning/policy.h"

namespace tributary::tuning {

struct Rule {
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks_min = 1;
  std::uint32_t ranks_max = UINT32_MAX;
  Step step;
  friend bool operator==(const Rule&, const Rule&) = default;
};

/// One measured time from which rules were made.
struct MeasuredTime {
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;
  Path path = Path::ranks;
  Algorithm algorithm = Algorithm::ring;
  double time_us = 0;
  friend bool operator==(const MeasuredTime&, const MeasuredTime&) = default;
};

struct Table {
  Figures figures;
  std::vector<Rule> rules;
  std::vector<MeasuredTime> measured;
  friend bool operator==(const Table&, const Table&) = default;
};

/// Returns the first rule that holds for the call; nullptr: no rule holds.
[[nodiscard]] const Rule* rule_for(const Table& table, const Call& call) noexcept;

[[nodiscard]] std::optional<Path> path_from_string(std::string_view text) noexcept;
[[nodiscard]] std::optional<Algorithm> algorithm_from_string(std::string_view text) noexcept;

/// Returns the text of a table's file, which ends with a line break.
[[nodiscard]] std::string to_text(const Table& table);
/// Reads a table. Errors begin with `where`, the name of a file. Errc::bad_config names the key, its value and the
/// allowed values.
[[nodiscard]] Result<Table> parse_table(const std::string& text, const std::string& where);
[[nodiscard]] Result<Table> read_table(const std::string& file);

}  // namespace tributary::tuning
