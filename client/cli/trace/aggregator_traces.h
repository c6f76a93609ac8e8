#pragma once
// Asks aggregators for traces over HTTP, several at a time, each within a few seconds.
#include <optional>
#include <string>
#include <vector>

#include "client/cli/manager/job_places.h"
#include "client/cli/trace/trace_recordings.h"

namespace tributary::cli {

class AggregatorTraces {
 public:
  explicit AggregatorTraces(std::vector<JobPlaces::Aggregator> aggregators);

  /// Begins to record the job at all aggregators.
  void begin(const std::string& job, double seconds);
  /// Adds the recordings, when their time is over.
  void take(std::vector<TraceDocument>& documents);
  /// Returns a sentence for each aggregator that has given no trace.
  [[nodiscard]] std::vector<std::string> troubles() const;

 private:
  struct Asked {
    JobPlaces::Aggregator aggregator;
    std::string url;           // the scheme and the address that have answered
    std::uint64_t number = 0;  // of its trace; 0: it records none
    std::string answer;
    std::string trouble;
  };
  static void begin_one(Asked& asked, const std::string& job, double seconds);
  static void take_one(Asked& asked);

  std::vector<Asked> asked_;
};

}  // namespace tributary::cli
