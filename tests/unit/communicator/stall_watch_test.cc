// Each time limit, in virtual time; and rank 0's part when ranks call different operations.
#include "client/communicator/stall_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/unit/communicator/part_rig.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

class Text final : public ProgressText {
 public:
  [[nodiscard]] std::string waits_for(const Operation& o) const override { return to_string(o) + ", something"; }
  [[nodiscard]] std::uint64_t steps(const Operation&) const override { return 5; }
  [[nodiscard]] std::string troubles() const override { return ""; }
};

class StallWatchTest : public PartTest {
 protected:
  StallWatchTest() {
    begin();
    pass(10s);
  }
  /// Ticks twice a second, like a rank.
  void wait(transport::Duration time) {
    for (; time > 0s; time -= 500ms) {
      pass(std::min<transport::Duration>(time, 500ms));
      watch_.tick();
    }
  }
  Operation& call(Operation::State way) {
    ways_.ways.push_back(way);
    return add_operation(queue_, now_);
  }
  /// Shows that rank 0 lives, by an inquiry.
  void inquire(std::uint64_t number) { watch_.on_inquiry({.type = FrameType::inquiry, .operation = number}); }
  [[nodiscard]] std::size_t told(FrameType type) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        whole_.to_rank_0, [&](const ControlMessage& m) { return m.type == type && !is_late(m); }));
  }
  [[nodiscard]] static bool is_late(const ControlMessage& m) {
    if (m.type != FrameType::progress) return false;
    const auto progress = decode_progress(m.body);
    return progress && progress->called && progress->unasked;
  }
  [[nodiscard]] std::size_t told_late() const {
    return static_cast<std::size_t>(std::ranges::count_if(whole_.to_rank_0, is_late));
  }

  ManualWays ways_;
  OperationQueue queue_{ways_, 1};
  MessageQueue messages_{1, {}};
  Text text_;
  Directory directory_{1, 4};
  StallWatch watch_{shared_, {.operations = queue_, .messages = messages_, .text = text_, .directory = directory_}};
};

TEST_F(StallWatchTest, BetweenTheRanksASuspicionComesAtSevenTenths) {
  call(Operation::State::fallback);
  wait(69s);
  EXPECT_EQ(told(FrameType::stalled), 0U);
  wait(1s);
  ASSERT_EQ(told(FrameType::stalled), 1U);
  const auto suspicion = std::ranges::find(whole_.to_rank_0, kSuspicion, &ControlMessage::value);
  ASSERT_NE(suspicion, whole_.to_rank_0.end());
  EXPECT_EQ(suspicion->operation, 0U);
}

TEST_F(StallWatchTest, RankOneSaysEachSecondThatItWaitsBetweenTheRanks) {
  call(Operation::State::fallback);
  wait(500ms);
  EXPECT_EQ(told_late(), 0U);
  wait(500ms);
  EXPECT_EQ(told_late(), 1U);
  wait(10s);
  EXPECT_EQ(told_late(), 11U);
}

TEST_F(StallWatchTest, NobodySaysSoInATree) {
  call(Operation::State::in_network);
  wait(4s);
  EXPECT_EQ(told_late(), 0U);
}

TEST_F(StallWatchTest, ATreeIsSuspectedAfterFiveSecondsAndAgain) {
  call(Operation::State::in_network);
  wait(4500ms);
  EXPECT_EQ(told(FrameType::stalled), 0U);
  wait(500ms);
  EXPECT_EQ(told(FrameType::stalled), 1U);
  wait(5s);
  EXPECT_EQ(told(FrameType::stalled), 2U);
}

TEST_F(StallWatchTest, ProgressDelaysTheSuspicion) {
  call(Operation::State::in_network);
  wait(4s);
  queue_.touch(now_);
  wait(4500ms);
  EXPECT_EQ(told(FrameType::stalled), 0U);
}

TEST_F(StallWatchTest, AtTheTimeOutTheRankReportsAgain) {
  call(Operation::State::fallback);
  for (int i = 0; i < 10; ++i) {
    wait(9500ms);
    inquire(0);
  }
  EXPECT_EQ(told(FrameType::stalled), 1U) << "the rank reports its suspicion";
  wait(5s);
  ASSERT_EQ(told(FrameType::stalled), 2U);
  EXPECT_EQ(whole_.to_rank_0.back().value, 0U);
  EXPECT_TRUE(whole_.errors.empty());
}

TEST_F(StallWatchTest, ARankZeroThatNeverAsksIsBlamedAtTheTimeOut) {
  call(Operation::State::fallback);
  wait(99500ms);
  EXPECT_TRUE(whole_.errors.empty());
  wait(500ms);
  ASSERT_EQ(whole_.errors.size(), 1U);
  EXPECT_EQ(whole_.errors[0].code, Errc::timed_out);
  EXPECT_NE(whole_.errors[0].message.find("rank 0: no answer; missing in operation 0"), std::string::npos)
      << whole_.errors[0].message;
}

TEST_F(StallWatchTest, ARankZeroThatAskedAndWentSilentIsBlamedAQuarterLater) {
  call(Operation::State::fallback);
  wait(90s);
  inquire(0);
  wait(34500ms);
  EXPECT_TRUE(whole_.errors.empty());
  wait(1s);
  EXPECT_FALSE(whole_.errors.empty());
}

TEST_F(StallWatchTest, TheEndHasALimitThatAnInquiryPutsOff) {
  shared_.life.leave();
  watch_.leaving();
  wait(100s);
  inquire(0);
  wait(104500ms);
  EXPECT_TRUE(whole_.errors.empty());
  wait(1s);
  ASSERT_FALSE(whole_.errors.empty());
  EXPECT_NE(whole_.errors[0].message.find("no answer to finalize"), std::string::npos);
}

TEST_F(StallWatchTest, TheTimeForWhichTheProcessWasStoppedDoesNotCount) {
  call(Operation::State::fallback);
  wait(60s);
  now_ += 300s;  // the process was stopped
  (void)shared_.clock.look(now_);
  watch_.tick();
  EXPECT_TRUE(whole_.errors.empty());
  EXPECT_EQ(told(FrameType::stalled), 0U);
  EXPECT_NE(watch_.stood_still().find("rank 1 stood still for 300"), std::string::npos) << watch_.stood_still();
  wait(10s);
  EXPECT_EQ(told(FrameType::stalled), 1U);
}

TEST_F(StallWatchTest, AMessageWithoutAPartnerEndsALittleAfterTheTimeOut) {
  Message message;
  message.dtype = DType::uint8;
  message.on_done = [](const Status&) {};
  message.called_at = now_;
  messages_.receive(1, std::move(message));  // a message of this rank itself
  wait(104s);
  EXPECT_EQ(told(FrameType::abort), 0U);
  wait(2s);
  ASSERT_GE(told(FrameType::abort), 1U);
  EXPECT_NE(whole_.to_rank_0.back().body.find("no partner for recv"), std::string::npos)
      << whole_.to_rank_0.back().body;
}

TEST_F(StallWatchTest, AnswersAnInquiryWithWhatItKnows) {
  call(Operation::State::fallback);
  inquire(0);
  auto progress = decode_progress(whole_.to_rank_0.back().body);
  ASSERT_TRUE(progress);
  EXPECT_TRUE(progress->called && !progress->ended && progress->signature_known);
  EXPECT_EQ(progress->steps, 5U);
  EXPECT_EQ(progress->oldest, 0U);
  queue_.finish(*queue_.find(0), {});
  inquire(0);
  progress = decode_progress(whole_.to_rank_0.back().body);
  EXPECT_TRUE(progress->called && progress->ended && progress->signature_known);
  inquire(1);
  progress = decode_progress(whole_.to_rank_0.back().body);
  EXPECT_FALSE(progress->called || progress->signature_known);
}

TEST_F(StallWatchTest, TellsWhatItSeesOfARankOfItsHost) {
  const auto ask_about = [this](std::uint64_t rank) {
    watch_.on_inquiry({.type = FrameType::inquiry, .operation = 3, .value = rank + 1});
  };
  ask_about(2);
  EXPECT_EQ(told(FrameType::progress), 0U) << "it sees nobody";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (true) pause();
  }
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  ASSERT_EQ(waitpid(child, nullptr, WUNTRACED), child);
  shared_.settings.neighbours->learn(2, child);
  ask_about(2);
  ask_about(3);
  ask_about(UINT64_MAX - 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_EQ(told(FrameType::progress), 1U);
  const auto progress = decode_progress(whole_.to_rank_0.back().body);
  ASSERT_TRUE(progress && progress->sighting);
  EXPECT_EQ(*progress->sighting, (Sighting{.rank = 2, .stopped = true}));
}

TEST_F(StallWatchTest, TellsWhoCalledWhat) {
  const Signature mine{Collective::all_reduce, DType::int32, ReduceOp::sum, 0, 16};
  FrameHeader theirs;
  theirs.set_signature({Collective::all_reduce, DType::int32, ReduceOp::max, 0, 16});
  watch_.on_mismatch(2, {.operation = 0, .signature = mine}, theirs);
  ASSERT_EQ(told(FrameType::abort), 1U);
  EXPECT_EQ(static_cast<Errc>(whole_.to_rank_0.back().value), Errc::mismatch);
  EXPECT_NE(whole_.to_rank_0.back().body.find("(max)"), std::string::npos) << whole_.to_rank_0.back().body;

  theirs.operation = 7;  // the peer has passed our operation: rank 0 finds out which operation it called instead
  watch_.on_mismatch(2, {.operation = 3, .signature = mine}, theirs);
  ASSERT_EQ(told(FrameType::stalled), 1U);
  EXPECT_EQ(whole_.to_rank_0.back().operation, 3U);
}

}  // namespace
}  // namespace tributary::client
