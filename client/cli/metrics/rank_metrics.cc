// docs/operations/metrics.md has the same families as a table.
#include "client/cli/metrics/rank_metrics.h"

#include <nlohmann/json.hpp>

#include "tributary/protocol/reason.h"

namespace tributary::cli {
namespace {

using nlohmann::json;
using service::MetricPage;
using service::MetricType;

constexpr int kFiguresFormat = 1;
constexpr std::size_t kClassesMax = 64;

[[noreturn]] void refuse(const std::string& why) {
  throw json::other_error::create(0, why, nullptr);
}

MetricPage::Histogram histogram_in(const json& object, const std::vector<double>& bounds) {
  MetricPage::Histogram histogram{.upper_bounds = bounds,
                                  .counts = object.at("counts").get<std::vector<std::uint64_t>>(),
                                  .sum = static_cast<double>(object.at("sum_ns").get<std::uint64_t>()) / 1e9};
  if (histogram.counts.size() != bounds.size() + 1)
    refuse("a histogram has " + std::to_string(histogram.counts.size()) + " classes and " +
           std::to_string(bounds.size()) + " bounds");
  return histogram;
}

std::vector<double> bounds_in(const json& document) {
  std::vector<double> bounds;
  for (const json& us : document.at("bounds").at("us"))
    bounds.push_back(static_cast<double>(us.get<std::uint64_t>()) / 1e6);
  if (bounds.size() > kClassesMax) refuse("it has too many classes");
  return bounds;
}

RankFigures figures_in(const json& document) {
  if (const int format = document.at("format").get<int>(); format != kFiguresFormat)
    refuse("it has form " + std::to_string(format) + ", and this program reads form " + std::to_string(kFiguresFormat) +
           ": use the same version of both");
  const std::vector<double> bounds = bounds_in(document);
  RankFigures figures{.job = document.at("job").get<std::string>(),
                      .host = document.at("host").get<std::string>(),
                      .rank = document.at("rank").get<std::uint64_t>(),
                      .communicators = document.at("communicators").get<std::uint64_t>(),
                      .calls = document.at("calls").get<std::uint64_t>(),
                      .failures = document.at("failures").get<std::uint64_t>(),
                      .open_seconds = static_cast<double>(document.at("open_ns").get<std::uint64_t>()) / 1e9,
                      .sizes = document.at("bounds").at("bytes").get<std::vector<std::uint64_t>>(),
                      .operations = {},
                      .bytes = document.at("bytes").get<std::map<std::string, std::uint64_t>>(),
                      .pauses = histogram_in(document.at("pauses"), bounds),
                      .reasons = document.value("reasons", decltype(RankFigures::reasons){}),
                      .values = document.value("values", decltype(RankFigures::values){})};
  for (const json& one : document.at("operations")) {
    figures.operations.push_back({.collective = one.at("collective").get<std::string>(),
                                  .size = one.at("size").get<std::size_t>(),
                                  .seconds = histogram_in(one, bounds)});
    if (figures.operations.back().size > figures.sizes.size()) refuse("a class of sizes is not known");
  }
  return figures;
}

/// Returns the value of the label `up_to`: the upper bound of a class of sizes, in bytes.
std::string bound_of(const RankFigures& rank, std::size_t size) {
  return size < rank.sizes.size() ? std::to_string(rank.sizes[size]) : "+Inf";
}

std::vector<std::string> labels_of(const RankFigures& rank, std::initializer_list<std::string> more = {}) {
  std::vector<std::string> labels{rank.job, std::to_string(rank.rank)};
  labels.insert(labels.end(), more);
  return labels;
}

template <class Value>
void add_figure(MetricPage& page, MetricType type, const char* name, const char* help,
                const std::vector<RankFigures>& ranks, Value RankFigures::* value) {
  page.begin(type, name, help, {"job_name", "rank"});
  for (const RankFigures& rank : ranks) page.add(rank.*value, labels_of(rank));
}

}  // namespace

Result<RankFigures> read_figures(const std::string& document) {
  try {
    return figures_in(json::parse(document));
  } catch (const json::exception& error) {
    return fail(Errc::bad_argument, std::string("no figures: ") + error.what());
  }
}

MetricPage rank_metrics(const std::vector<RankFigures>& ranks) {
  MetricPage page("tributary_rank_");
  page.begin(MetricType::gauge, "info", "Always 1; the labels describe this rank.", {"job_name", "rank", "host"});
  for (const RankFigures& rank : ranks) page.add(1, labels_of(rank, {rank.host}));
  add_figure(page, MetricType::gauge, "communicators", "Communicators now.", ranks, &RankFigures::communicators);
  add_figure(page, MetricType::counter, "calls_total", "Collective calls.", ranks, &RankFigures::calls);
  add_figure(page, MetricType::counter, "failures_total", "Collective calls that failed.", ranks,
             &RankFigures::failures);
  add_figure(page, MetricType::gauge, "open_operation_seconds",
             "Time since the call of the oldest collective that has not ended; 0: none is open.", ranks,
             &RankFigures::open_seconds);
  page.begin(MetricType::counter, "bytes_total", "Payload of collectives that have succeeded, by path.",
             {"job_name", "rank", "path"});
  for (const RankFigures& rank : ranks) {
    for (const auto& [path, bytes] : rank.bytes) page.add(bytes, labels_of(rank, {path}));
  }
  page.begin(MetricType::counter, "values_total",
             "Elements of collectives whose values were counted, by buffer and kind: all elements, NaN, infinities and "
             "subnormal numbers.",
             {"job_name", "rank", "buffer", "kind"});
  for (const RankFigures& rank : ranks) {
    for (const auto& [buffer, kinds] : rank.values) {
      for (const auto& [kind, count] : kinds) page.add(count, labels_of(rank, {buffer, kind}));
    }
  }
  page.begin(MetricType::histogram, "operation_seconds",
             "Time of collectives that have succeeded, by collective and size: at most `up_to` bytes.",
             {"job_name", "rank", "collective", "up_to"});
  for (const RankFigures& rank : ranks) {
    for (const auto& one : rank.operations)
      page.add_histogram(one.seconds, labels_of(rank, {one.collective, bound_of(rank, one.size)}));
  }
  page.begin(MetricType::histogram, "failover_pause_seconds",
             "Time from the loss of trees until operations went on between the ranks.", {"job_name", "rank"});
  for (const RankFigures& rank : ranks) page.add_histogram(rank.pauses, labels_of(rank));
  page.begin(MetricType::counter, "reasons_total", "How often each reason has arisen at the rank, by its code.",
             {"job_name", "rank", "code"});
  for (const RankFigures& rank : ranks) {
    for (const auto& [code, count] : rank.reasons) {
      if (reason_of(code) != Reason::none) page.add(count, labels_of(rank, {code}));
    }
  }
  return page;
}

}  // namespace tributary::cli
