#include "service-kit/metric_page.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <limits>
#include <sstream>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::service {
namespace {

/// Returns `text` with each `from` replaced by `to`.
std::string replaced(std::string text, char from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, 1, to);
  }
  return text;
}

/// Returns `help` on one line, as the text format requires. The serializer escapes only the values of labels.
std::string escaped_help(std::string help) {
  return replaced(replaced(std::move(help), '\\', "\\\\"), '\n', "\\n");
}

struct TypeNames {
  const char* name;
  prometheus::MetricType theirs;
};
constexpr TypeNames kTypes[] = {{"counter", prometheus::MetricType::Counter},
                                {"gauge", prometheus::MetricType::Gauge},
                                {"histogram", prometheus::MetricType::Histogram}};  // by MetricType

void put(prometheus::ClientMetric& metric, MetricType type, double value, const MetricPage::Histogram& histogram) {
  if (type == MetricType::counter) metric.counter.value = value;
  if (type == MetricType::gauge) metric.gauge.value = value;
  if (type != MetricType::histogram) return;
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    below += histogram.counts[i];
    const bool last = i == histogram.upper_bounds.size();
    metric.histogram.bucket.push_back(
        {.cumulative_count = below,
         .upper_bound = last ? std::numeric_limits<double>::infinity() : histogram.upper_bounds[i]});
  }
  metric.histogram.sample_count = below;
  metric.histogram.sample_sum = histogram.sum;
}

}  // namespace

void MetricPage::begin(MetricType type, std::string name, std::string help, std::vector<std::string> labels) {
  TRIBUTARY_ASSERT((type == MetricType::counter) == name.ends_with("_total"), "{} is of type {}",
                   std::string_view(name), type);
  families_.push_back({.type = type, .name = std::move(name), .help = std::move(help), .labels = std::move(labels)});
}

void MetricPage::add_number(double value, std::vector<std::string> label_values) {
  TRIBUTARY_ASSERT(!families_.empty(), "a value without a family");
  TRIBUTARY_ASSERT(label_values.size() == families_.back().labels.size(), "{} values for {} labels of {}",
                   label_values.size(), families_.back().labels.size(), std::string_view(families_.back().name));
  families_.back().samples.push_back({.value = value, .label_values = std::move(label_values)});
}

void MetricPage::add_histogram(const Histogram& histogram, std::vector<std::string> label_values) {
  TRIBUTARY_ASSERT(histogram.counts.size() == histogram.upper_bounds.size() + 1, "{} classes and {} bounds",
                   histogram.counts.size(), histogram.upper_bounds.size());
  add_number(0, std::move(label_values));
  TRIBUTARY_ASSERT(families_.back().type == MetricType::histogram, "{} is no histogram",
                   std::string_view(families_.back().name));
  families_.back().samples.back().histogram = histogram;
}

std::string MetricPage::text() const {
  std::vector<prometheus::MetricFamily> all;
  for (const Family& family : families_) {
    prometheus::MetricFamily& made = all.emplace_back();
    made.name = prefix_ + family.name;
    made.help = escaped_help(family.help);
    made.type = kTypes[static_cast<std::size_t>(family.type)].theirs;
    for (const Sample& sample : family.samples) {
      prometheus::ClientMetric& metric = made.metric.emplace_back();
      put(metric, family.type, sample.value, sample.histogram);
      for (std::size_t i = 0; i < family.labels.size(); ++i) {
        prometheus::ClientMetric::Label& label = metric.label.emplace_back();
        label.name = family.labels[i];
        label.value = sample.label_values[i];
      }
    }
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, all);
  return out.str();
}

std::string MetricPage::table() const {
  std::string rows = "| `" + prefix_ + "...` | type | unit | labels | meaning |\n|---|---|---|---|---|\n";
  for (const Family& family : families_) {
    std::string labels;
    for (const std::string& label : family.labels) labels += (labels.empty() ? "`" : ", `") + label + "`";
    rows += "| `" + family.name + "` | " + kTypes[static_cast<std::size_t>(family.type)].name + " | " +
            std::string(unit_of(family.name)) + " | " + labels + (labels.empty() ? "| " : " | ") +
            replaced(family.help, '|', "\\|") + " |\n";
  }
  return rows;
}

std::string_view unit_of(std::string_view name) noexcept {
  constexpr std::string_view kTotal = "_total";
  if (name.ends_with(kTotal)) name.remove_suffix(kTotal.size());
  for (const std::string_view unit : std::array<std::string_view, 3>{"bytes", "seconds", "packets"}) {
    if (name.ends_with(unit)) return unit;
  }
  return "number";
}

}  // namespace tributary::service
