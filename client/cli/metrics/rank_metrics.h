#pragma once
// Makes the metrics of ranks from the figures that their status ports answer.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "service-kit/metric_page.h"
#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The figures of one process of ranks.
struct RankFigures {
  struct Operations {
    std::string collective;
    std::size_t size = 0;  // class of sizes
    service::MetricPage::Histogram seconds;
  };
  std::string job, host;
  std::uint64_t rank = 0;
  std::uint64_t communicators = 0, calls = 0, failures = 0;
  double open_seconds = 0;
  std::vector<std::uint64_t> sizes;  // upper bounds of the classes of sizes, but of the last one
  std::vector<Operations> operations;
  std::map<std::string, std::uint64_t> bytes;  // by path
  service::MetricPage::Histogram pauses;
  std::map<std::string, std::uint64_t> reasons;  // by code
  // By buffer (input, result), then by kind (elements, nan, infinity, subnormal).
  std::map<std::string, std::map<std::string, std::uint64_t>> values;
};

/// Reads the document of one process. Errc::bad_argument: it has another form.
[[nodiscard]] Result<RankFigures> read_figures(const std::string& document);
/// Returns the metrics of these ranks.
[[nodiscard]] service::MetricPage rank_metrics(const std::vector<RankFigures>& ranks);

}  // namespace tributary::cli
