#include "client/cli/metrics/otlp_metrics.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "client/cli/otlp/document_parts.h"

namespace tributary::cli {
namespace {

using nlohmann::json;
using service::MetricPage;
using service::MetricType;

constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

/// Returns "tributary.rank.operation" for the family "operation_seconds" of the page "tributary_rank_".
std::string metric_name(const MetricPage& page, const MetricPage::Family& family) {
  std::string name = family.name;
  for (const char* end : {"_total", "_seconds", "_bytes"}) {
    if (name.ends_with(end)) name.resize(name.size() - std::string_view(end).size());
  }
  std::string prefix = page.prefix();
  std::ranges::replace(prefix, '_', '.');
  return prefix + name;
}

std::string unit_of(const MetricPage::Family& family) {
  const std::string_view unit = service::unit_of(family.name);
  if (unit == "seconds") return "s";
  return unit == "bytes" ? "By" : "1";
}

json point_of(const MetricPage::Family& family, const MetricPage::Sample& sample, std::int64_t now) {
  json point{{"timeUnixNano", std::to_string(now)}, {"attributes", json::array()}};
  for (std::size_t i = 0; i < family.labels.size(); ++i)
    point["attributes"].push_back(otlp_attribute(family.labels[i], sample.label_values[i]));
  if (family.type != MetricType::histogram) {
    point["asDouble"] = sample.value;
    return point;
  }
  const MetricPage::Histogram& histogram = sample.histogram;
  point["count"] = std::to_string(std::accumulate(histogram.counts.begin(), histogram.counts.end(), std::uint64_t{0}));
  point["sum"] = histogram.sum;
  point["explicitBounds"] = histogram.upper_bounds;
  point["bucketCounts"] = json::array();
  for (const std::uint64_t count : histogram.counts) point["bucketCounts"].push_back(std::to_string(count));
  return point;
}

json metric_of(const MetricPage& page, const MetricPage::Family& family, std::int64_t now) {
  json data{{"dataPoints", json::array()}};
  for (const MetricPage::Sample& sample : family.samples) data["dataPoints"].push_back(point_of(family, sample, now));
  if (family.type != MetricType::gauge) data["aggregationTemporality"] = kCumulative;
  if (family.type == MetricType::counter) data["isMonotonic"] = true;
  static constexpr std::array<const char*, 3> kKinds{"sum", "gauge", "histogram"};  // by MetricType
  return {{"name", metric_name(page, family)},
          {"description", family.help},
          {"unit", unit_of(family)},
          {kKinds[static_cast<std::size_t>(family.type)], std::move(data)}};
}

}  // namespace

std::string otlp_metrics(const MetricPage& page, const std::string& host, std::int64_t now) {
  json metrics = json::array();
  for (const MetricPage::Family& family : page.families()) {
    if (!family.samples.empty()) metrics.push_back(metric_of(page, family, now));
  }
  json resource{
      {"attributes", json::array({otlp_attribute("service.name", "tributary"), otlp_attribute("host.name", host)})}};
  json in_scope{{"scope", otlp_scope()}, {"metrics", std::move(metrics)}};
  json of_resource{{"resource", std::move(resource)}, {"scopeMetrics", json::array({std::move(in_scope)})}};
  return otlp_text({{"resourceMetrics", json::array({std::move(of_resource)})}});
}

}  // namespace tributary::cli
