// The reload at SIGHUP: changes that the store does not take are tried again, and nothing else is done twice.
#include "tree-manager/daemon/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

namespace tributary::manager {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ReloadTest : public ::testing::Test {
 protected:
  Reloader reloader() {
    return {[this]() -> Result<Settings> {
              if (!file_is_right_) return fail(Errc::bad_config, "the file is wrong");
              Settings settings;
              settings.log_level = "off";
              return settings;
            },
            nullptr,
            {.files = [this](const Settings&) { ++files_; },
             .records = [this](const Settings&) -> Result<bool> {
               ++records_;
               if (blocked_) return fail(Errc::retry, "the store blocks");
               return topology_is_right_;
             }}};
  }
  bool file_is_right_ = true, topology_is_right_ = true, blocked_ = false;
  int files_ = 0, records_ = 0;
};

TEST_F(ReloadTest, ReadsAllOnce) {
  auto one = reloader();
  one.begin();
  EXPECT_FALSE(one.waits());
  EXPECT_EQ(files_, 1);
  EXPECT_EQ(records_, 1);
}

TEST_F(ReloadTest, ChangesThatTheStoreDoesNotTakeAreTriedAgain) {
  auto one = reloader();
  blocked_ = true;
  one.begin();
  ASSERT_TRUE(one.waits());
  one.go_on();
  ASSERT_TRUE(one.waits());
  blocked_ = false;
  one.go_on();
  EXPECT_FALSE(one.waits());
  EXPECT_EQ(records_, 3);
  EXPECT_EQ(files_, 1) << "what needs no store is done once";
}

TEST_F(ReloadTest, SaysWhetherTheChangesThatWaitedWereMade) {
  const auto log_of = [this](bool right) {
    auto one = reloader();
    blocked_ = true;
    one.begin();
    blocked_ = false;
    topology_is_right_ = right;
    std::ostringstream log;
    const auto before = spdlog::default_logger();
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
    one.go_on();
    spdlog::set_default_logger(before);
    EXPECT_FALSE(one.waits());
    return log.str();
  };
  EXPECT_THAT(log_of(true), HasSubstr("the reload has gone on"));
  EXPECT_THAT(log_of(false), AllOf(HasSubstr("without some of its changes"), Not(HasSubstr("has gone on"))));
}

TEST_F(ReloadTest, ALaterReloadMakesWhatWaits) {
  auto one = reloader();
  blocked_ = true;
  one.begin();
  blocked_ = false;
  file_is_right_ = false;
  one.begin();
  EXPECT_TRUE(one.waits()) << "a wrong configuration changes nothing";
  EXPECT_EQ(records_, 1);
  file_is_right_ = true;
  one.begin();
  EXPECT_FALSE(one.waits());
  EXPECT_EQ(records_, 2);
}

}  // namespace
}  // namespace tributary::manager
