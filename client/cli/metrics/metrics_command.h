#pragma once
// `tributary metrics`: the metrics of the ranks on this host, as text for Prometheus, or for a collector of
// OpenTelemetry.
#include <string>

namespace tributary::cli {

struct MetricsOptions {
  std::string folder;        // empty: TRIBUTARY_STATUS_DIR, or the user's folder
  std::string job;           // empty: all jobs
  std::string into;          // the file; empty: standard output
  std::string otlp;          // URL of a collector that gets the metrics; empty: none
  double every_seconds = 0;  // 0: once
};
/// Returns the exit code of the process.
[[nodiscard]] int write_metrics(const MetricsOptions& options);

}  // namespace tributary::cli
