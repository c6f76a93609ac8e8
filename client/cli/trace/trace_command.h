#pragma once
// `tributary trace`: what the ranks on this machine and the aggregators of their job do for some seconds, as a file for
// Chrome's trace viewer or Perfetto. Recordings of several hosts become one file.
#include <string>
#include <vector>

#include "client/cli/manager/access.h"

namespace tributary::cli {

struct TraceOptions {
  ManagerOptions manager;
  std::string folder;  // empty: TRIBUTARY_STATUS_DIR, or the user's folder
  std::string job;     // empty: the only job on this machine
  double seconds = 2;
  std::string into;                 // the file; empty: trace-JOB.json
  std::string otlp;                 // URL of a collector that gets the operations as spans; empty: none
  std::string parts;                // not empty: the file that gets the recordings in place of a trace
  std::vector<std::string> merged;  // not empty: files with recordings of several hosts, which become one trace
};
/// Returns the exit code of the process.
[[nodiscard]] int trace(const TraceOptions& options);

}  // namespace tributary::cli
