#pragma once
// The log's line about a late rank.
#include <cstdint>
#include <string>

#include "tributary/protocol/late_rank.h"

namespace tributary::client {

/// Returns a line such as "rank 37 on host node-5 is late by 812 ms, 3 operations behind; 63 others wait".
[[nodiscard]] inline std::string late_line(const std::string& name, const LateRank& late, std::uint64_t others) {
  std::string line = name + " is late by " + std::to_string(late.lag.count()) + " ms";
  if (late.operations_behind > 0) {
    line += ", " + std::to_string(late.operations_behind) + " operation" + (late.operations_behind == 1 ? "" : "s") +
            " behind";
  }
  if (const std::string_view cause = row_of(late.cause).text; !cause.empty()) line += " (" + std::string(cause) + ")";
  return line + "; " + std::to_string(others) + (others == 1 ? " other waits" : " others wait");
}

}  // namespace tributary::client
