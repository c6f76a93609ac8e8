// The manager logs every decision; a test's output is for what went wrong.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace {

class QuietLog : public ::testing::Environment {
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
};
[[maybe_unused]] const auto* const kQuietLog = ::testing::AddGlobalTestEnvironment(new QuietLog);

}  // namespace
