#include "service-kit/metric_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace tributary::service {
namespace {

TEST(MetricPage, WritesFamiliesInTheirOrderWithTypeHelpAndLabels) {
  MetricPage page("test_");
  page.counter("bytes_total", "Bytes that came.", 7);
  page.begin(MetricType::gauge, "lanes", "Lanes now.", {"worker", "state"});
  page.add(1, {"0", "open"});
  page.add(2, {"1", "shut"});
  EXPECT_EQ(page.text(),
            "# HELP test_bytes_total Bytes that came.\n"
            "# TYPE test_bytes_total counter\n"
            "test_bytes_total 7\n"
            "# HELP test_lanes Lanes now.\n"
            "# TYPE test_lanes gauge\n"
            "test_lanes{worker=\"0\",state=\"open\"} 1\n"
            "test_lanes{worker=\"1\",state=\"shut\"} 2\n");
}

TEST(MetricPage, NamesAFamilyThatHasNoValueYet) {
  MetricPage page("test_");
  page.begin(MetricType::counter, "losses_total", "Losses.", {"reason"});
  EXPECT_EQ(page.text(), "# HELP test_losses_total Losses.\n# TYPE test_losses_total counter\n");
}

TEST(MetricPage, EscapesLabelValuesAndHelp) {
  MetricPage page("test_");
  page.begin(MetricType::gauge, "info", "Back\\slash,\nnew line, \"quotes\".", {"name"});
  page.add(1, {"a\\b\"c\nd"});
  EXPECT_EQ(page.text(),
            "# HELP test_info Back\\\\slash,\\nnew line, \"quotes\".\n"
            "# TYPE test_info gauge\n"
            "test_info{name=\"a\\\\b\\\"c\\nd\"} 1\n");
}

TEST(MetricPage, WritesWholeNumbersWithoutAnExponent) {
  MetricPage page("test_");
  page.begin(MetricType::gauge, "n", "Numbers.");
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{1} << 30U, std::uint64_t{1} << 53U}) {
    page.add(number);
  }
  for (const double number : {0.5, -2.0}) page.add(number);
  page.add(true);
  EXPECT_EQ(page.text(),
            "# HELP test_n Numbers.\n# TYPE test_n gauge\n"
            "test_n 0\ntest_n 1073741824\ntest_n 9007199254740992\n"
            "test_n 0.5\ntest_n -2\ntest_n 1\n");
}

TEST(MetricPage, TableHasARowForEachFamilyAndNoValues) {
  MetricPage page("test_");
  page.counter("sent_bytes_total", "Sent, or lost | found.", 7);
  page.begin(MetricType::gauge, "lanes", "Lanes now.", {"worker", "state"});
  page.add(1, {"0", "open"});
  EXPECT_EQ(page.table(),
            "| `test_...` | type | unit | labels | meaning |\n"
            "|---|---|---|---|---|\n"
            "| `sent_bytes_total` | counter | bytes | | Sent, or lost \\| found. |\n"
            "| `lanes` | gauge | number | `worker`, `state` | Lanes now. |\n");
}

TEST(MetricPage, UnitIsTheEndOfTheName) {
  EXPECT_EQ(unit_of("memory_bytes"), "bytes");
  EXPECT_EQ(unit_of("plan_seconds_total"), "seconds");
  EXPECT_EQ(unit_of("udp_sent_packets_total"), "packets");
  EXPECT_EQ(unit_of("joins_total"), "number");
  EXPECT_EQ(unit_of("draining"), "number");
}

TEST(MetricPageDeathTest, AValueForEachLabelIsNeeded) {
  MetricPage page("test_");
  EXPECT_DEATH(page.add(1), "a value without a family");
  page.begin(MetricType::gauge, "lanes", "Lanes now.", {"worker"});
  EXPECT_DEATH(page.add(1), "0 values for 1 labels of lanes");
  EXPECT_DEATH(page.add(1, {"0", "open"}), "2 values for 1 labels of lanes");
}

TEST(MetricPageDeathTest, OnlyACounterEndsInTotal) {
  MetricPage page("test_");
  EXPECT_DEATH(page.counter("joins", "Joins.", 1), "joins is of type 0");
  EXPECT_DEATH(page.gauge("joins_total", "Joins.", 1), "joins_total is of type 1");
}

TEST(MetricPage, AHistogramHasTheValuesUpToEachBoundTheirSumAndTheirNumber) {
  MetricPage page("tributary_test_");
  page.begin(MetricType::histogram, "lag_seconds", "How late.", {"worker"});
  page.add_histogram({.upper_bounds = {0.5, 2}, .counts = {3, 0, 4}, .sum = 30.25}, {"1"});
  EXPECT_THAT(page.text(), testing::HasSubstr("# TYPE tributary_test_lag_seconds histogram\n"
                                              "tributary_test_lag_seconds_count{worker=\"1\"} 7\n"
                                              "tributary_test_lag_seconds_sum{worker=\"1\"} 30.25\n"
                                              "tributary_test_lag_seconds_bucket{worker=\"1\",le=\"0.5\"} 3\n"
                                              "tributary_test_lag_seconds_bucket{worker=\"1\",le=\"2\"} 3\n"
                                              "tributary_test_lag_seconds_bucket{worker=\"1\",le=\"+Inf\"} 7\n"));
  EXPECT_THAT(page.table(), testing::HasSubstr("| `lag_seconds` | histogram | seconds | `worker` | How late. |\n"));
}

}  // namespace
}  // namespace tributary::service
