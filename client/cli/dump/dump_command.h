#pragma once
// `tributary dump`: the last operations of the ranks on this machine, and the operation that does not end.
#include <cstdint>
#include <string>

#include "client/cli/manager/access.h"

namespace tributary::cli {

enum class DumpForm : std::uint8_t { text, json, fr_trace };

struct DumpOptions {
  std::string folder;  // empty: TRIBUTARY_STATUS_DIR, or the user's folder
  std::string job;     // empty: all jobs
  DumpForm form = DumpForm::text;
  std::string into;          // for fr_trace: the folder for its files
  std::uint32_t last = 3;    // operations of each rank in the text
  std::string save;          // folder for the records, which another call compares; empty: compare them now
  ManagerOptions manager{};  // names the aggregators; without a manager they are not asked
  bool only_late = false;    // leave out all that is not about ranks for which others wait
};
/// Returns the exit code of the process.
[[nodiscard]] int dump(const DumpOptions& options);

}  // namespace tributary::cli
