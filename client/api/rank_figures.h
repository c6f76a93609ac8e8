#pragma once
// The figures of one process of ranks for metrics: sums over its communicators, also those that have ended, so that
// counters never go back.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/operation/flight_record.h"

namespace tributary::client {

/// One thread at a time uses it.
class RankFigures {
 public:
  void began(const FlightRecord& record) {
    if (!origin_) origin_ = record.origin();
  }
  /// Keeps the numbers of a communicator that ends.
  void ended(const FlightRecord& record);
  /// Returns a JSON object. Its job, host and rank are those of the process's first communicator.
  [[nodiscard]] std::string json(const std::vector<std::shared_ptr<const FlightRecord>>& records) const;

 private:
  std::optional<FlightOrigin> origin_;
  OperationNumbers ended_;
  std::uint64_t calls_ended_ = 0;
};

}  // namespace tributary::client
