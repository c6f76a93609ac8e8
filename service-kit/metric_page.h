#pragma once
// A daemon's metrics. Prometheus reads them as text, and docs/operations/metrics.md has them as a table. Both come from
// the families that the daemon declares, each with its type, help and labels.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tributary::service {

enum class MetricType : std::uint8_t { counter, gauge, histogram };

/// Families of metrics and their values at one time. Names are <prefix><what>_<unit>; names of counters end in _total.
class MetricPage {
 public:
  /// Every name begins with `prefix`, such as "tributary_aggregator_".
  explicit MetricPage(std::string prefix) : prefix_(std::move(prefix)) {}

  /// Begins a family. Each following add() gives the family a value, with a value for each of its labels.
  void begin(MetricType type, std::string name, std::string help, std::vector<std::string> labels = {});
  template <class T>
  void add(T value, std::vector<std::string> label_values = {}) {
    add_number(static_cast<double>(value), std::move(label_values));
  }
  /// The values that a histogram has counted: `counts` has one class more than `upper_bounds`, for all greater values.
  struct Histogram {
    std::vector<double> upper_bounds;
    std::vector<std::uint64_t> counts;
    double sum = 0;
  };
  /// Gives the family, which is a histogram, a value.
  void add_histogram(const Histogram& histogram, std::vector<std::string> label_values = {});
  /// Adds a family that has one value and no labels.
  template <class T>
  void counter(std::string name, std::string help, T value) {
    begin(MetricType::counter, std::move(name), std::move(help));
    add(value);
  }
  template <class T>
  void gauge(std::string name, std::string help, T value) {
    begin(MetricType::gauge, std::move(name), std::move(help));
    add(value);
  }

  struct Sample {
    double value = 0;
    std::vector<std::string> label_values;
    Histogram histogram{};  // in place of `value`, if the family is a histogram
  };
  struct Family {
    MetricType type = MetricType::gauge;
    std::string name;
    std::string help;
    std::vector<std::string> labels;
    std::vector<Sample> samples;
  };
  [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }
  [[nodiscard]] const std::vector<Family>& families() const noexcept { return families_; }
  /// Returns the page in Prometheus' text format, version 0.0.4.
  [[nodiscard]] std::string text() const;
  /// Returns the families as a table in Markdown without values: name, type, unit, labels, meaning.
  [[nodiscard]] std::string table() const;

 private:
  void add_number(double value, std::vector<std::string> label_values);

  std::string prefix_;
  std::vector<Family> families_;
};

/// Returns the unit at the end of a metric's name, before _total: "bytes", "seconds", "packets", or else "number".
[[nodiscard]] std::string_view unit_of(std::string_view name) noexcept;

}  // namespace tributary::service
