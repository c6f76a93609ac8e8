// The time limits of rank 0's coordinator: which rank it names when a limit is over, and which time does not count.
#include "client/recovery/coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/unit/communicator/coordinator_rig.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

struct Limit {
  const char* name;
  std::function<void(Rig&)> begin;
  transport::Duration after;
  const char* said;
  const char* body;  // a part of the message
};

std::vector<Limit> every_limit() {
  return {
      {"the manager's answer", [](Rig& r) { r.bring_to(At::asking); }, 3s, "commit never",
       "the manager did not answer in time"},
      {"joining",
       [](Rig& r) {
         r.bring_to(At::joining);
         r.from(0, r.joined());
       },
       2s, "commit never", "not ready: rank 1 on host beta, rank 2 on host gamma"},
      {"finalizing",
       [](Rig& r) {
         r.bring_to(At::in_network);
         r.from(1, {.type = FrameType::finalize});
         r.wait(9s);
         r.from_all(Rig::progress(kNever, {}));
         (void)r.said();
       },
       1s, "inquiry never", ""},
      {"an inquiry",
       [](Rig& r) {
         r.bring_to(At::in_network);
         r.from(1, Rig::stalled(3));
         r.from(1, Rig::progress(3, {.called = true}));
         (void)r.said();
       },
       1s, "abort: timed out; releases 77", "rank 0 on host alpha, rank 2 on host gamma: no answer"},
  };
}

TEST(Coordinator, KeepsEachLimitAndNamesTheLateRank) {
  for (const Limit& limit : every_limit()) {
    SCOPED_TRACE(limit.name);
    Rig rig;
    limit.begin(rig);
    rig.wait(limit.after - 10ms);
    EXPECT_EQ(rig.said(), "");
    rig.wait(10ms);
    EXPECT_EQ(rig.said(), limit.said);
    EXPECT_NE(rig.output.last.body.find(limit.body), std::string::npos) << rig.output.last.body;
  }
}

TEST(Coordinator, LetsRanksThatRequireTreesWaitForThem) {
  CoordinatorSettings settings = Rig::usual();
  settings.require_trees = true;
  Rig rig(settings);
  rig.start();
  rig.answer(fail(Errc::unreachable, "the manager is away"));
  EXPECT_EQ(rig.said(), "asks for a group") << "there must be no commit";
  EXPECT_EQ(rig.coordinator.search().why_not, "the manager is away [manager-unreachable]");
  EXPECT_FALSE(rig.coordinator.search().under_way);
  rig.wait(200ms);
  EXPECT_EQ(rig.said(), "asks for a group");
  EXPECT_TRUE(rig.coordinator.search().under_way);
  rig.answer(descriptor_of(1));
  rig.from_all(rig.joined());
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) rig.from(rank, rig.next_operation(0));
  EXPECT_EQ(rig.said(), "descriptor to each; propose; commit 0");
  EXPECT_EQ(rig.coordinator.search().why_not, "");
}

TEST(Coordinator, DoesNotWaitForTreesThatTheManagerDenies) {
  CoordinatorSettings settings = Rig::usual();
  settings.require_trees = true;
  Rig rig(settings);
  rig.start();
  (void)rig.said();
  rig.answer(fail(Errc::denied, "no token was given [no-token]"));
  EXPECT_EQ(rig.said(), "commit never");
  EXPECT_EQ(rig.output.last.body, "no token was given [no-token]") << "the manager's code stays";
}

/// The error names the rank that finalizes last, unless this rank waits for another rank.
TEST(Coordinator, FindsTheRankThatKeepsTheOthersFromFinalizing) {
  Rig rig;
  const auto begin = [&rig] {
    rig.bring_to(At::in_network);
    rig.from(1, {.type = FrameType::finalize});
    rig.wait(9s);
    EXPECT_EQ(rig.said(), "inquiry never") << "the time is not over yet";
  };
  begin();
  rig.from_all(Rig::progress(kNever, {}));
  rig.wait(1s);
  rig.from_all(Rig::progress(kNever, {}));
  EXPECT_EQ(rig.said(), "inquiry never; abort: timed out; releases 77");
  EXPECT_TRUE(rig.output.last.body.ends_with(
      "rank 0 on host alpha, rank 2 on host gamma: did not finalize, as other ranks did"))
      << rig.output.last.body;
}

TEST(Coordinator, NamesTheRankThatIsSilentWhileOthersWaitForItAndDoNotFinalize) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from(1, {.type = FrameType::finalize});
  rig.wait(9s);
  rig.from(0, Rig::progress(kNever, {.oldest = 7}));
  rig.from(1, Rig::progress(kNever, {}));
  rig.wait(1s);
  (void)rig.said();
  rig.from(0, Rig::progress(kNever, {.oldest = 7}));
  rig.from(1, Rig::progress(kNever, {}));
  rig.wait(200ms);
  EXPECT_EQ(rig.said(), "abort: timed out; releases 77") << "the end comes soon, because the rank was silent before";
  EXPECT_NE(rig.output.last.body.find(": rank 2 on host gamma: no answer; missing in finalize"), std::string::npos)
      << rig.output.last.body;
}

TEST(Coordinator, NamesTheRankThatHasNotMadeTheCallInWhichOthersWaitAndDoNotFinalize) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from(1, {.type = FrameType::finalize});
  rig.wait(10s);
  (void)rig.said();
  rig.from(0, Rig::progress(kNever, {.oldest = 7, .waits_for = "rank 2"}));
  rig.from(1, Rig::progress(kNever, {}));
  rig.from(2, Rig::progress(kNever, {}));
  EXPECT_EQ(rig.said(), "inquiry 7");
  rig.from(0, Rig::progress(7, {.called = true, .oldest = 7}));
  rig.from(1, Rig::progress(7, {.called = true, .ended = true}));
  rig.from(2, Rig::progress(7, {}));
  EXPECT_EQ(rig.said(), "abort: timed out; releases 77");
  EXPECT_NE(rig.output.last.body.find(": rank 2 on host gamma: did not call operation 7"), std::string::npos)
      << rig.output.last.body;
}

TEST(Coordinator, TimeInWhichItsProcessStoodStillCountsForNoLimit) {
  for (const Limit& limit : every_limit()) {
    SCOPED_TRACE(limit.name);
    Rig rig;
    limit.begin(rig);
    rig.coordinator.excuse(20s, rig.now + 20s);
    rig.jump(20s);
    EXPECT_EQ(rig.said(), "");
    rig.wait(limit.after - 10ms);
    EXPECT_EQ(rig.said(), "");
    rig.wait(10ms);
    EXPECT_EQ(rig.said(), limit.said);
  }
}

TEST(Coordinator, ARankZeroThatStoodStillDoesNotBlameThoseThatDidNotWaitForIt) {
  for (const bool hears_it : {false, true}) {
    for (const auto absence : {16s, 20s}) {
      SCOPED_TRACE(absence.count());
      Rig rig;
      rig.bring_to(At::in_network);
      rig.now += absence;
      rig.coordinator.excuse(absence, rig.now);
      const auto find_out = [&] {
        if (!hears_it) return rig.coordinator.on_rank_gone(2, "it closed the connection");
        rig.from(1, {.type = FrameType::abort,
                     .value = static_cast<std::uint64_t>(Errc::peer_gone),
                     .body = "rank 1 lost its connection to rank 2"});
      };
      find_out();
      EXPECT_EQ(rig.said(), "abort: peer gone; releases 77");
      EXPECT_TRUE(rig.output.last.body.starts_with("rank 0 on host alpha stood still for " +
                                                   std::to_string(absence.count()) +
                                                   " s, and found when it went on: rank "))
          << rig.output.last.body;
    }
  }
}

/// The coordinator may begin to exist only after rank 0 has stood still.
TEST(Coordinator, ARankZeroThatStoodStillWhileTheRanksMetBlamesItself) {
  for (const At state : {At::asking, At::proposing}) {
    SCOPED_TRACE(to_string(state));
    CoordinatorSettings settings = Rig::usual();
    settings.away = 21s;
    Rig rig(std::move(settings));
    rig.bring_to(state);
    if (state == At::proposing) rig.wait(8s);  // until ranks begin, each may give up for this absence
    rig.coordinator.on_rank_gone(1, "it closed the connection");
    EXPECT_EQ(rig.output.last.body,
              "rank 0 on host alpha stood still for 21 s, and found when it went on: rank 1 on host beta is gone: it "
              "closed the connection");
  }
}

TEST(Coordinator, ARankThatIsGoneLongAfterTheRanksHaveBegunIsNamedThoughRankZeroStoodStillBefore) {
  CoordinatorSettings settings = Rig::usual();
  settings.away = 21s;
  Rig rig(std::move(settings));
  rig.bring_to(At::in_network);
  rig.wait(31s);
  rig.coordinator.on_rank_gone(1, "it closed the connection");
  EXPECT_EQ(rig.output.last.body, "rank 1 on host beta is gone: it closed the connection");
}

TEST(Coordinator, ARankThatIsGoneLongAfterRankZeroStoodStillIsNamed) {
  // Second case: the pause was too short to change the limit.
  for (const auto& [absence, then] : {std::pair{20s, 31s}, std::pair{1s, 0s}}) {
    Rig rig;
    rig.bring_to(At::in_network);
    rig.now += absence;
    rig.coordinator.excuse(absence, rig.now);
    rig.wait(then);
    (void)rig.said();
    rig.coordinator.on_rank_gone(2, "it closed the connection");
    EXPECT_EQ(rig.output.last.body, "rank 2 on host gamma is gone: it closed the connection");
  }
}

TEST(Coordinator, WaitsForRanksThatMoveAsLongAsNobodyComplains) {
  for (const At state : {At::proposing, At::freezing}) {
    Rig rig;
    rig.bring_to(state);
    rig.wait(10min);
    EXPECT_EQ(rig.said(), "") << to_string(state) << ": a rank that waits too long there reports a stall";
  }
}

TEST(Coordinator, TriesAgainAtGrowingIntervals) {
  Rig rig;
  rig.start();
  EXPECT_EQ(rig.said(), "asks for a group");
  const auto retry_after = [&](transport::Duration pause) {
    rig.answer(fail(Errc::unreachable, "nobody answers"));
    (void)rig.said();
    rig.wait(pause - 10ms);
    EXPECT_EQ(rig.said(), "");
    rig.wait(10ms);
    EXPECT_EQ(rig.said(), "asks for a group");
  };
  for (const auto pause : {200ms, 400ms, 800ms, 1000ms, 1000ms}) retry_after(pause);
  rig.answer(descriptor_of(1));
  rig.from_all(rig.joined());
  rig.from_all(rig.next_operation(1));
  rig.from(0, rig.lane_failed());
  rig.from_all(rig.holdings({0}));
  (void)rig.said();
  rig.wait(200ms);
  EXPECT_EQ(rig.said(), kAsksAgain) << "after the loss of trees in use the pauses are short again";
}

TEST(Coordinator, AnAnswerAfterItsLimitIsNotTaken) {
  Rig rig;
  rig.bring_to(At::asking);
  rig.wait(3s);
  EXPECT_EQ(rig.said(), "commit never");
  rig.answer(descriptor_of(1));
  EXPECT_EQ(rig.said(), "");
}

TEST(Coordinator, TheLastRankThatFinalizesEndsTheLimit) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from_all({.type = FrameType::finalize});
  EXPECT_EQ(rig.said(), "finalize");
  rig.wait(10min);
  rig.coordinator.on_rank_gone(1, "it left");
  EXPECT_EQ(rig.said(), "") << "a rank that has finalized may go";
}

TEST(Coordinator, ARankThatEndsBeforeAllHaveFinalizedIsAnError) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from(1, {.type = FrameType::finalize});
  rig.from(1, {.type = FrameType::finalize});
  rig.from(2, {.type = FrameType::finalize});
  EXPECT_EQ(rig.said(), "") << "two messages of one rank count once";
  rig.coordinator.on_rank_gone(1, "its connection broke");
  EXPECT_EQ(rig.said(), "abort: peer gone; releases 77");
  EXPECT_NE(rig.output.last.body.find("rank 1 on host beta is gone"), std::string::npos);
}

}  // namespace
}  // namespace tributary::client
