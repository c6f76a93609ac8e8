// Rank 0's log names the rank for which the others wait.
#include <gmock/gmock.h>

#include "client/operation/late_log.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LateLogTest : public ::testing::Test {
 protected:
  std::vector<std::string> take(const std::vector<LateRank>& late) {
    log_.take(late, now_);
    return std::exchange(lines_, {});
  }
  std::vector<std::string> lines_;
  LateLog log_{
      {.members = 64,
       .ranks = 64,
       .name_of = [](std::uint32_t rank) { return "rank " + std::to_string(rank) + " on host node-5"; }},
      [this](const std::string& line, bool is_late) { lines_.push_back((is_late ? "warn: " : "info: ") + line); }};
  transport::TimePoint now_{1h};
};

TEST_F(LateLogTest, ALateRankIsNamedOnceUntilItIsOnTimeAgain) {
  const std::vector<LateRank> late{{.rank = 37, .lag = 812ms, .operations_behind = 3, .cause = LateCause::late_call}};
  EXPECT_THAT(take(late), ElementsAre("warn: rank 37 on host node-5 is late by 812 ms, 3 operations behind (it begins "
                                      "its operations late); 63 others wait"));
  now_ += 1min;
  EXPECT_THAT(take(late), IsEmpty());
  EXPECT_THAT(take({}), ElementsAre("info: rank 37 on host node-5 is no longer late"));
  EXPECT_THAT(take({}), IsEmpty());
}

TEST_F(LateLogTest, TheCauseOfARankThatWasSilentIsToldOnceWhenItIsKnown) {
  const auto late = [](LateCause cause) { return std::vector<LateRank>{{.rank = 37, .lag = 812ms, .cause = cause}}; };
  EXPECT_THAT(take(late(LateCause::silent)),
              ElementsAre("warn: rank 37 on host node-5 is late by 812 ms (nothing comes from it); 63 others wait"));
  EXPECT_THAT(take(late(LateCause::silent)), IsEmpty());
  EXPECT_THAT(take(late(LateCause::unknown)), IsEmpty());
  EXPECT_THAT(take(late(LateCause::no_cpu)),
              ElementsAre("warn: rank 37 on host node-5 is still late (its thread waits for a processor)"));
  EXPECT_THAT(take(late(LateCause::silent)), IsEmpty());
  EXPECT_THAT(take(late(LateCause::lossy_link)), IsEmpty());
}

TEST_F(LateLogTest, NamesThatComeAndGoCauseOneWarningInTenSeconds) {
  std::size_t warnings = 0;
  for (std::uint32_t i = 0; i < 100; ++i, now_ += 100ms) {
    for (const std::string& line : take({{.rank = i % 60, .lag = 1ms}})) warnings += line.starts_with("warn") ? 1U : 0U;
  }
  EXPECT_EQ(warnings, 1U);
  EXPECT_THAT(take({{.rank = 63, .lag = 1ms}}),
              ElementsAre("warn: rank 63 on host node-5 is late by 1 ms; 63 others wait"));
}

TEST_F(LateLogTest, ARankThatTheGroupDoesNotHaveIsNotNamed) {
  EXPECT_THAT(take({{.rank = 64, .lag = 1ms}}), IsEmpty());
}

}  // namespace
}  // namespace tributary::client
