// Silences the manager's log of decisions, so that a test's output shows only errors.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

namespace {

class QuietLog : public ::testing::Environment {
  void SetUp() override { spdlog::set_level(spdlog::level::off); }
};
[[maybe_unused]] const auto* const kQuietLog = ::testing::AddGlobalTestEnvironment(new QuietLog);

}  // namespace
