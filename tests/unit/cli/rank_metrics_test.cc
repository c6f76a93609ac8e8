// `tributary metrics`: figures of ranks as metrics for Prometheus.
#include "client/cli/metrics/rank_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/cli/metrics/otlp_metrics.h"
#include "tests/unit/service_kit/metrics_document.h"

namespace tributary::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kDocument =
    R"({"format":1,"pid":7,"job":"training","host":"node-1","rank":3,"communicators":2,"calls":12,"failures":1,
        "open_ns":1500000000,"bounds":{"us":[16,64],"bytes":[4096,65536]},
        "operations":[{"collective":"all_reduce","size":1,"counts":[4,5,1],"sum_ns":2000000},
                      {"collective":"barrier","size":0,"counts":[1,0,0],"sum_ns":1000},
                      {"collective":"broadcast","size":2,"counts":[0,0,1],"sum_ns":3000}],
        "bytes":{"in-network":4096,"between ranks":0},"pauses":{"counts":[0,0,1],"sum_ns":250000000},
        "reasons":{"no-token":3,"made-up":1},
        "values":{"input":{"elements":100,"nan":7},"result":{"infinity":2}}})";

TEST(RankMetrics, AreThoseOfTheDocument) {
  service::expect_documented(rank_metrics({}), TRIBUTARY_METRICS_DOCUMENT);
}

TEST(RankMetrics, HaveTheFiguresOfEachRank) {
  const auto figures = read_figures(kDocument);
  ASSERT_TRUE(figures) << figures.error().message;
  const std::string text = rank_metrics({*figures}).text();
  for (
      const char* line :
      {R"(tributary_rank_info{job_name="training",rank="3",host="node-1"} 1)",
       R"(tributary_rank_calls_total{job_name="training",rank="3"} 12)",
       R"(tributary_rank_failures_total{job_name="training",rank="3"} 1)",
       R"(tributary_rank_open_operation_seconds{job_name="training",rank="3"} 1.5)",
       R"(tributary_rank_bytes_total{job_name="training",rank="3",path="in-network"} 4096)",
       R"(operation_seconds_count{job_name="training",rank="3",collective="all_reduce",up_to="65536"} 10)",
       R"(operation_seconds_bucket{job_name="training",rank="3",collective="all_reduce",up_to="65536",le="6.4e-05"} 9)",
       R"(operation_seconds_count{job_name="training",rank="3",collective="barrier",up_to="4096"} 1)",
       R"(operation_seconds_count{job_name="training",rank="3",collective="broadcast",up_to="+Inf"} 1)",
       R"(tributary_rank_values_total{job_name="training",rank="3",buffer="input",kind="nan"} 7)",
       R"(tributary_rank_values_total{job_name="training",rank="3",buffer="result",kind="infinity"} 2)",
       R"(failover_pause_seconds_sum{job_name="training",rank="3"} 0.25)"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, HasSubstr(R"(tributary_rank_reasons_total{job_name="training",rank="3",code="no-token"} 3)"));
  EXPECT_THAT(text, Not(HasSubstr("made-up"))) << "a process cannot make more series than there are codes";
}

TEST(RankMetrics, GoToACollectorWithOpenTelemetrysNames) {
  const auto figures = read_figures(kDocument);
  ASSERT_TRUE(figures) << figures.error().message;
  const auto document = nlohmann::json::parse(otlp_metrics(rank_metrics({*figures}), "node-1", 7));
  const auto& metrics = document.at("resourceMetrics").at(0).at("scopeMetrics").at(0).at("metrics");
  const auto metric = [&](const std::string& name) {
    const auto found = std::ranges::find_if(metrics, [&](const auto& one) { return one.at("name") == name; });
    return found == metrics.end() ? nlohmann::json() : *found;
  };
  const auto calls = metric("tributary.rank.calls");
  EXPECT_EQ(calls.at("unit"), "1");
  EXPECT_EQ(calls.at("sum").at("isMonotonic"), true);
  EXPECT_EQ(calls.at("sum").at("dataPoints").at(0).at("asDouble"), 12);
  EXPECT_EQ(calls.at("sum").at("dataPoints").at(0).at("timeUnixNano"), "7");
  EXPECT_EQ(metric("tributary.rank.bytes").at("unit"), "By");
  const auto seconds = metric("tributary.rank.operation").at("histogram").at("dataPoints").at(0);
  EXPECT_EQ(seconds.at("bucketCounts"), nlohmann::json({"4", "5", "1"}));
  EXPECT_EQ(seconds.at("count"), "10");
  EXPECT_EQ(metric("tributary.rank.communicators").at("gauge").at("dataPoints").size(), 1U);
}

TEST(RankMetrics, RefuseAnotherForm) {
  std::string text = kDocument;
  for (const auto& [from, to] : {std::pair{"\"format\":1", "\"format\":2"},
                                 {"[4,5,1]", "[4,5]"},
                                 {"\"size\":2", "\"size\":3"},
                                 {"\"calls\":12", "\"calls\":\"x\""},
                                 {"}}", "}"}}) {
    std::string wrong = text;
    wrong.replace(wrong.rfind(from), std::string_view(from).size(), to);
    const auto read = read_figures(wrong);
    ASSERT_FALSE(read) << to;
    EXPECT_THAT(read.error().message, HasSubstr("no figures: "));
  }
}

}  // namespace
}  // namespace tributary::cli
