#include "service-kit/log_formatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary::service {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr const char* kTime = "[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+[.][0-9]+[+-][0-9]+:?[0-9]+";

std::string line_of(LogFormat format, spdlog::level::level_enum level, std::string_view text) {
  LogFormatter formatter(format, "tributary", "node-1");
  spdlog::memory_buf_t out;
  formatter.clone()->format({"", level, spdlog::string_view_t(text.data(), text.size())}, out);
  return {out.data(), out.size()};
}

TEST(LogFormatter, WritesTimeLevelHostProcessAndComponent) {
  const std::string pid = std::to_string(getpid());
  EXPECT_THAT(line_of(LogFormat::text, spdlog::level::warn, "a tree is lost"),
              MatchesRegex(std::string(kTime) + " warn node-1\\[" + pid + "\\] tributary: a tree is lost\n"));
}

TEST(LogFormatter, WritesTheComponentOnce) {
  EXPECT_THAT(line_of(LogFormat::text, spdlog::level::info, "tributary: rank 0"), EndsWith("] tributary: rank 0\n"));
  EXPECT_THAT(line_of(LogFormat::text, spdlog::level::info, "tributary-x: y"),
              EndsWith("] tributary: tributary-x: y\n"));
}

TEST(LogFormatter, WritesAnObjectOnEachLineAndEscapesTheText) {
  const std::string line = line_of(LogFormat::json, spdlog::level::err, "tributary: a \"b\" \\ c\nd");
  EXPECT_THAT(line, StartsWith(R"({"time":")"));
  EXPECT_THAT(line, EndsWith(R"(","level":"error","component":"tributary","host":"node-1","pid":)" +
                             std::to_string(getpid()) + R"(,"message":"a \"b\" \\ c\u000ad"})" + "\n"));
}

TEST(LogFormatter, ATextOfSeveralLinesIsOneRecord) {
  EXPECT_THAT(
      line_of(LogFormat::text, spdlog::level::warn, "PUT /v1/x\n2026-11-23 info node-1[1] \x1b[2J\x7f\r \u00fc"),
      EndsWith("] tributary: PUT /v1/x\\x0a2026-11-23 info node-1[1] \\x1b[2J\\x7f\\x0d \u00fc\n"));
}

TEST(LogFormatter, HasTwoForms) {
  EXPECT_EQ(parse_log_format("text"), LogFormat::text);
  EXPECT_EQ(parse_log_format("json"), LogFormat::json);
  EXPECT_EQ(parse_log_format("yaml"), std::nullopt);
}

}  // namespace
}  // namespace tributary::service
