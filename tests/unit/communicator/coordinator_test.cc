// Rank 0's coordinator, message by message and state by state. Each of its reactions is a line of a table; every other
// pair of a message and a state must change nothing.
#include "client/recovery/coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/unit/communicator/coordinator_rig.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

constexpr auto kSoon = 250ms;  // longer than the first pause between two tries, shorter than every limit

// ---- each message in each state

struct Arriving {
  const char* name;
  std::function<void(Rig&)> come;  // the message comes from every rank
};

std::vector<Arriving> every_message() {
  std::vector<Arriving> all{
      {"joined", [](Rig& r) { r.from_all(r.joined()); }},
      {"joined, failed", [](Rig& r) { r.from_all(r.not_joined()); }},
      {"joined, cannot", [](Rig& r) { r.from_all(r.cannot_join()); }},
      {"next_operation", [](Rig& r) { r.from_all(r.next_operation(9)); }},
      {"lane_failed", [](Rig& r) { r.from_all(r.lane_failed()); }},
      {"holdings", [](Rig& r) { r.from_all(r.holdings({5})); }},
      {"stalled", [](Rig& r) { r.from_all(Rig::stalled(3)); }},
      {"stalled, suspicion", [](Rig& r) { r.from_all(Rig::stalled(3, kSuspicion)); }},
      {"stalled, disagreement", [](Rig& r) { r.from_all(Rig::stalled(3, kDisagreement)); }},
      {"progress", [](Rig& r) { r.from_all(Rig::progress(3, {})); }},
      {"finalize", [](Rig& r) { r.from_all({.type = FrameType::finalize}); }},
      {"abort",
       [](Rig& r) {
         r.from_all({.type = FrameType::abort, .value = static_cast<std::uint64_t>(Errc::aborted), .body = "enough"});
       }},
      {"gone", [](Rig& r) { r.coordinator.on_rank_gone(1, "its connection broke"); }},
  };
  // Messages of another generation, messages that only rank 0 sends, and messages that no process sends.
  for (const int stale : {-1, +1}) {
    const auto add = [&](const char* name, ControlMessage (*make)(Rig&, int)) {
      all.push_back({name, [make, stale](Rig& r) { r.from_all(make(r, stale)); }});
    };
    add("stale joined", [](Rig& r, int by) { return r.joined(by); });
    add("stale joined, failed", [](Rig& r, int by) { return r.not_joined(by); });
    add("stale joined, cannot", [](Rig& r, int by) { return r.cannot_join(by); });
    add("stale next_operation", [](Rig& r, int by) { return r.next_operation(9, by); });
    add("stale lane_failed", [](Rig& r, int by) { return r.lane_failed(by); });
    add("stale holdings", [](Rig& r, int by) { return r.holdings({5}, by); });
  }
  for (const FrameType type :
       {FrameType::hello, FrameType::challenge, FrameType::welcome, FrameType::descriptor, FrameType::propose,
        FrameType::commit, FrameType::freeze, FrameType::recover, FrameType::inquiry, FrameType::goodbye,
        FrameType::amend, FrameType::amended, FrameType::second_way, FrameType::peer_hello, FrameType::contribution,
        FrameType::result}) {
    all.push_back({"not for rank 0's coordinator",
                   [type](Rig& r) { r.from_all({.type = type, .epoch = r.generation, .body = "?"}); }});
  }
  return all;
}

struct Reaction {
  const char* message;
  At state;
  const char* said;     // messages that the coordinator sends at once
  const char* follows;  // messages within kSoon, without those that the state sends by itself
};

constexpr Reaction kReactions[] = {
    // trees form
    {"joined", At::joining, "propose", ""},
    {"joined, failed", At::joining, "commit never", kAsksAgain},
    {"joined, cannot", At::joining, "releases 77; commit never", ""},
    {"next_operation", At::proposing, "commit 9", ""},
    {"next_operation", At::amending, "amended 9 by the amendment", ""},
    // trees break
    {"lane_failed", At::joining, "commit never", kAsksAgain},
    {"lane_failed", At::proposing, "commit never", kAsksAgain},
    {"lane_failed", At::in_network, "freeze", ""},
    {"lane_failed", At::amending, "freeze", ""},
    {"holdings", At::freezing, "recover to each", kAsksAgain},
    // an operation does not end
    {"stalled", At::resting, "inquiry 3", kAsksAgain},
    {"stalled", At::asking, "inquiry 3", ""},
    {"stalled", At::joining, "inquiry 3", ""},
    {"stalled", At::proposing, "inquiry 3", ""},
    {"stalled", At::in_network, "inquiry 3", ""},
    {"stalled", At::amending, "inquiry 3", ""},
    {"stalled", At::freezing, "inquiry 3", ""},
    {"stalled, suspicion", At::resting, "inquiry 3", kAsksAgain},
    {"stalled, suspicion", At::asking, "inquiry 3", ""},
    {"stalled, suspicion", At::joining, "inquiry 3", ""},
    {"stalled, suspicion", At::proposing, "inquiry 3", ""},
    {"stalled, suspicion", At::in_network, "inquiry 3", ""},
    {"stalled, suspicion", At::amending, "inquiry 3", ""},
    {"stalled, suspicion", At::freezing, "inquiry 3", ""},
    {"stalled, disagreement", At::resting, "inquiry 3", kAsksAgain},
    {"stalled, disagreement", At::asking, "inquiry 3", ""},
    {"stalled, disagreement", At::joining, "inquiry 3", ""},
    {"stalled, disagreement", At::proposing, "inquiry 3", ""},
    {"stalled, disagreement", At::in_network, "inquiry 3", ""},
    {"stalled, disagreement", At::amending, "inquiry 3", ""},
    {"stalled, disagreement", At::freezing, "inquiry 3", ""},
    // the end
    {"finalize", At::resting, "finalize", kAsksAgain},
    {"finalize", At::asking, "finalize", ""},
    {"finalize", At::joining, "finalize", ""},
    {"finalize", At::proposing, "finalize", ""},
    {"finalize", At::in_network, "finalize", ""},
    {"finalize", At::amending, "finalize", ""},
    {"finalize", At::freezing, "finalize", ""},
    {"abort", At::resting, "abort: aborted; releases 77", ""},
    {"abort", At::asking, "abort: aborted", ""},
    {"abort", At::joining, "abort: aborted; releases 77", ""},
    {"abort", At::proposing, "abort: aborted; releases 77", ""},
    {"abort", At::in_network, "abort: aborted; releases 77", ""},
    {"abort", At::amending, "abort: aborted; releases 77", ""},
    {"abort", At::freezing, "abort: aborted; releases 77", ""},
    {"gone", At::resting, "abort: peer gone; releases 77", ""},
    {"gone", At::asking, "abort: peer gone", ""},
    {"gone", At::joining, "abort: peer gone; releases 77", ""},
    {"gone", At::proposing, "abort: peer gone; releases 77", ""},
    {"gone", At::in_network, "abort: peer gone; releases 77", ""},
    {"gone", At::amending, "abort: peer gone; releases 77", ""},
    {"gone", At::freezing, "abort: peer gone; releases 77", ""},
};

const Reaction* reaction_to(const std::string& message, At state) {
  const auto it =
      std::ranges::find_if(kReactions, [&](const Reaction& r) { return r.message == message && r.state == state; });
  return it == std::end(kReactions) ? nullptr : it;
}

TEST(Coordinator, ReactsToEachMessageInEachStateAsTheTableSaysAndToNothingElse) {
  for (const Arriving& message : every_message()) {
    for (const At state : kEveryState) {
      SCOPED_TRACE(std::string(message.name) + " while " + to_string(state));
      Rig rig, unmoved;
      for (Rig* each : {&rig, &unmoved}) each->bring_to(state);
      message.come(rig);
      const Reaction* reaction = reaction_to(message.name, state);
      EXPECT_EQ(rig.said(), reaction != nullptr ? reaction->said : "");
      for (Rig* each : {&rig, &unmoved}) each->wait(kSoon);
      const std::string as_ever = unmoved.said();
      EXPECT_EQ(rig.said(), reaction != nullptr ? reaction->follows : as_ever);
    }
  }
}

TEST(Coordinator, NamesTheLostAggregatorsThatNoRequestHasReportedWhenItGivesTheGroupBack) {
  for (const bool reported : {false, true}) {
    Rig rig;
    rig.bring_to(At::resting);
    rig.wait(20ms);
    ASSERT_EQ(rig.said(), kAsksAgain);
    if (reported) rig.answer(GroupDescriptor{.group = kGroup, .epoch = 2, .job = "", .reason = "full", .lanes = {}});
    rig.coordinator.stop();
    EXPECT_EQ(rig.said(), "releases 77");
    EXPECT_EQ(rig.manager.lost, reported ? std::vector<std::string>{} : std::vector<std::string>{"aggregator1"});
  }
}

TEST(Coordinator, CountsEachRankOnceHoweverOftenItAnswers) {
  Rig rig;
  rig.bring_to(At::joining);
  for (int i = 0; i < 5; ++i) rig.from(1, rig.joined());
  rig.from(0, rig.joined());
  EXPECT_EQ(rig.said(), "");
  rig.from(2, rig.joined());
  EXPECT_EQ(rig.said(), "propose");
  for (int i = 0; i < 5; ++i) rig.from(2, rig.next_operation(4));
  rig.from(0, rig.next_operation(11));
  EXPECT_EQ(rig.said(), "");
  rig.from(1, rig.next_operation(2));
  EXPECT_EQ(rig.said(), "commit 11") << "11 is the greatest answer: no rank has started that operation";
  rig.from(0, rig.lane_failed());
  rig.from(0, rig.lane_failed());
  EXPECT_EQ(rig.said(), "freeze");
  for (int i = 0; i < 5; ++i) rig.from(0, rig.holdings({1}));
  rig.from(1, rig.holdings({2}));
  EXPECT_EQ(rig.said(), "");
  rig.from(2, rig.holdings({3}));
  EXPECT_EQ(rig.said(), "recover to each");
}

TEST(Coordinator, AnswersOfOneStepDoNotCountInTheNext) {
  Rig rig;
  rig.bring_to(At::proposing);
  rig.from(0, rig.next_operation(4));
  rig.from(1, rig.next_operation(4));
  EXPECT_EQ(rig.said(), "") << "all ranks had joined before; `joined` is no answer to `propose`";
  rig.from(2, rig.next_operation(4));
  EXPECT_EQ(rig.said(), "commit 4");
  rig.from(1, rig.lane_failed());
  (void)rig.said();
  rig.from(0, rig.holdings({4}));
  EXPECT_EQ(rig.said(), "");
}

// ---- amendments of the policy

TEST(Coordinator, AnAmendmentHoldsFromTheGreatestNextOperationOn) {
  Rig rig;
  rig.bring_to(At::in_network);
  EXPECT_TRUE(rig.coordinator.amend("first"));
  EXPECT_EQ(rig.said(), "amend");
  EXPECT_FALSE(rig.coordinator.amend("second")) << "one amendment at a time";
  EXPECT_EQ(rig.coordinator.unanswered(), "rank 0 on host alpha, rank 1 on host beta, rank 2 on host gamma");
  rig.from(0, rig.next_operation(12));
  rig.from(0, rig.next_operation(99));  // a second answer: it does not count, and the greatest answer still does
  rig.from(1, rig.next_operation(14));
  EXPECT_EQ(rig.said(), "");
  rig.from(2, rig.next_operation(13));
  EXPECT_EQ(rig.said(), "amended 99 by first");
  EXPECT_TRUE(rig.coordinator.amend("second"));
  EXPECT_EQ(rig.said(), "amend");
  rig.from_all(rig.next_operation(100));
  EXPECT_EQ(rig.said(), "amended 100 by second");
}

TEST(Coordinator, AnAmendmentIsDroppedIfARankDoesNotUseTheTreesYet) {
  Rig rig;
  rig.bring_to(At::amending);
  rig.from(0, rig.next_operation(3));
  rig.from(1, rig.next_operation(kNever));
  rig.from(2, rig.next_operation(3));
  EXPECT_EQ(rig.said(), "amended never by the amendment");
}

TEST(Coordinator, AnAmendmentIsForgottenWithItsTrees) {
  Rig rig;
  rig.bring_to(At::amending);
  rig.from(0, rig.next_operation(8));
  rig.from(1, rig.lane_failed());
  EXPECT_EQ(rig.said(), "freeze");
  rig.from(1, rig.next_operation(8));
  rig.from(2, rig.next_operation(8));
  EXPECT_EQ(rig.said(), "") << "these answers come too late";
  rig.from_all(rig.holdings({5}));
  EXPECT_EQ(rig.said(), "recover to each");
  rig.wait(kSoon);
  rig.answer(descriptor_of(2));
  rig.from_all(rig.joined());
  rig.from_all(rig.next_operation(20));
  (void)rig.said();
  rig.from_all(rig.next_operation(21));
  EXPECT_EQ(rig.said(), "") << "the new trees have the policy that came with them";
  EXPECT_TRUE(rig.coordinator.amend("another"));
  for (const At state : {At::resting, At::asking, At::joining, At::proposing, At::freezing, At::stopped}) {
    Rig other;
    other.bring_to(state);
    EXPECT_FALSE(other.coordinator.amend("x")) << to_string(state);
    EXPECT_EQ(other.said(), "");
  }
}

// ---- generations

TEST(Coordinator, HoldingsOfEarlierTreesAreNotCountedForThePresentTrees) {
  Rig rig;
  rig.bring_to(At::resting);
  rig.wait(kSoon);
  rig.answer(descriptor_of(2));
  rig.from_all(rig.joined());
  rig.from_all(rig.next_operation(20));
  rig.from(0, rig.lane_failed());
  EXPECT_EQ(rig.said(), std::string(kAsksAgain) + "; descriptor to each; propose; commit 20; freeze");
  rig.from(0, rig.holdings({8}));
  rig.from(1, rig.holdings({8}));
  rig.from(2, rig.holdings({500}, -1));  // a late message about the previous trees
  EXPECT_EQ(rig.said(), "");
  rig.from(2, rig.holdings({9}));
  EXPECT_EQ(rig.said(), "recover to each");
}

TEST(Coordinator, ALateLaneFailedOfEarlierTreesLeavesTheNewTreesInUse) {
  Rig rig;
  rig.bring_to(At::resting);
  rig.wait(kSoon);
  rig.answer(descriptor_of(2));
  rig.from(2, rig.lane_failed(-1));
  rig.from_all(rig.joined());
  rig.from(2, rig.lane_failed(-1));
  rig.from_all(rig.next_operation(20));
  rig.from(2, rig.lane_failed(-1));
  EXPECT_EQ(rig.said(), std::string(kAsksAgain) + "; descriptor to each; propose; commit 20");
}

TEST(Coordinator, GenerationsCountDescriptorsWhateverEpochTheManagerGivesThem) {
  Rig rig;
  rig.bring_to(At::joining);
  const std::uint32_t first = rig.generation;
  rig.from(1, rig.not_joined());
  rig.wait(kSoon);
  rig.answer(descriptor_of(1));  // the manager has made a new group, which begins with epoch 1 again
  EXPECT_EQ(rig.generation, first + 1);
  (void)rig.said();
  rig.from_all(rig.joined(-1));
  EXPECT_EQ(rig.said(), "");
}

// ---- the manager's answers

TEST(Coordinator, ATreelessStartLetsTheRanksBeginAtOnce) {
  auto settings = Rig::usual();
  settings.use_trees = false;
  settings.why_not = "no manager is configured";
  Rig rig(settings);
  rig.start();
  EXPECT_EQ(rig.said(), "commit never");
  EXPECT_EQ(rig.output.last.body, "no manager is configured");
  rig.wait(1min);
  EXPECT_EQ(rig.said(), "") << "rank 0 asks for no trees";
}

TEST(Coordinator, SaysWhyThereIsNoTree) {
  struct {
    Result<GroupDescriptor> answer;
    const char* reason;
  } const cases[] = {
      {fail(Errc::unreachable, "nobody answers at 10.0.0.1"), "nobody answers at 10.0.0.1 [manager-unreachable]"},
      {fail(Errc::timed_out, "it is slow"), "it is slow [manager-timed-out]"},
      {fail(Errc::denied, "you may not"), "you may not [not-allowed]"},
      {fail(Errc::denied, "no token was given [no-token]"), "no token was given [no-token]"},
      {fail(Errc::retry, "it is full"), "it is full [manager-busy]"},
      {fail(Errc::bad_argument, "which group?"), "which group? [group-forgotten]"},
      {fail(Errc::io, "its disk is full"), "its disk is full [manager-failed]"},
      {GroupDescriptor{.group = kGroup, .epoch = 1, .job = "", .reason = "all are full", .lanes = {}},
       "all are full [no-tree]"},
      {GroupDescriptor{.group = kGroup, .epoch = 1, .job = "", .reason = "at its quota [quota-lanes]", .lanes = {}},
       "at its quota [quota-lanes]"},
      {GroupDescriptor{.group = kGroup, .epoch = 1, .job = "", .reason = "", .lanes = {}},
       "the manager has no tree for this group [no-tree]"},
      {descriptor_of(1, kRanks + 1), "the manager answered for another number of ranks [manager-failed]"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.reason);
    Rig rig;
    rig.bring_to(At::asking);
    rig.answer(c.answer);
    EXPECT_EQ(rig.said(), "commit never");
    EXPECT_EQ(rig.output.last.body, c.reason);
  }
}

TEST(Coordinator, AGroupThatTheManagerForgotIsAskedForAsANewOne) {
  Rig rig;
  rig.bring_to(At::resting);
  rig.wait(kSoon);
  EXPECT_EQ(rig.said(), kAsksAgain);
  rig.answer(fail(Errc::bad_argument, "there is no group 77"));
  rig.wait(1s);
  EXPECT_EQ(rig.said(), "asks for a group");
}

TEST(Coordinator, AFailedAggregatorIsReportedToTheManagerOnce) {
  Rig rig;
  rig.bring_to(At::freezing);
  rig.from(0, rig.lane_failed(0, "aggregator2"));
  rig.from(2, rig.lane_failed(0, "aggregator1"));
  rig.from(2, rig.lane_failed(0, ""));
  rig.from_all(rig.holdings({5}));
  rig.wait(kSoon);
  EXPECT_EQ(rig.said(), "recover to each; asks for trees of 77 after epoch 1 without aggregator1 without aggregator2");
  rig.answer(descriptor_of(2));
  rig.from(0, rig.lane_failed(0, "aggregator3"));
  rig.wait(1s);
  EXPECT_EQ(rig.said(), "descriptor to each; commit never; asks for trees of 77 after epoch 2 without aggregator3");
}

// A rank reports a loss while the manager is asked, so the lost aggregator may be in the manager's answer.
TEST(Coordinator, AnAggregatorThatIsLostDuringARequestIsReportedBeforeTheNewTreesAreUsed) {
  Rig rig;
  rig.bring_to(At::resting);
  rig.from(2, rig.lane_failed(0, "aggregator1"));
  rig.wait(kSoon);
  EXPECT_EQ(rig.said(), kAsksAgain);
  rig.from(0, rig.lane_failed(0, "aggregator1"));
  rig.from(2, rig.lane_failed(0, "aggregator2"));
  EXPECT_EQ(rig.said(), "");
  rig.answer(descriptor_of(2));
  EXPECT_EQ(rig.said(), "asks for trees of 77 after epoch 2 without aggregator2");
  rig.answer(descriptor_of(3));
  EXPECT_EQ(rig.said(), "descriptor to each");
}

TEST(Coordinator, LostTreesAreAskedForAgainSoonAndRefusedOnesLater) {
  Rig rig;
  rig.bring_to(At::resting);
  rig.wait(20ms);
  EXPECT_EQ(rig.said(), kAsksAgain);
  rig.answer(GroupDescriptor{.group = kGroup, .epoch = 2, .job = "", .reason = "all are full", .lanes = {}});
  rig.wait(150ms);
  EXPECT_EQ(rig.said(), "");
}

TEST(Coordinator, LetsTheRanksBeginWithoutTreesThatTakeLongAndMovesThemLater) {
  for (const bool manager_is_slow : {true, false}) {
    auto settings = Rig::usual();
    settings.begin_within = 100ms;
    Rig rig(settings);
    rig.bring_to(manager_is_slow ? At::asking : At::joining);
    rig.wait(90ms);
    EXPECT_EQ(rig.said(), "");
    rig.wait(500ms);
    EXPECT_EQ(rig.said(), "commit never") << "once";
    EXPECT_EQ(rig.output.last.epoch, 0U) << "this commit gives no trees up";
    if (manager_is_slow) rig.answer(descriptor_of(1));
    rig.from_all(rig.joined());
    rig.from_all(rig.next_operation(12));
    EXPECT_EQ(rig.said(), manager_is_slow ? "descriptor to each; propose; commit 12" : "propose; commit 12");
  }
}

TEST(Coordinator, ARankThatCanJoinNoTreeEndsTheSearchForGood) {
  Rig rig;
  rig.bring_to(At::joining);
  rig.from(2, rig.cannot_join());
  EXPECT_EQ(rig.said(), "releases 77; commit never");
  rig.wait(2min);
  EXPECT_EQ(rig.said(), "");
  rig.coordinator.stop();
  EXPECT_EQ(rig.said(), "") << "there is no group to give back any more";
}

TEST(Coordinator, AnAnswerAfterItsEndFindsNobody) {
  ManagerOnDemand::DescriptorAnswer late;
  {
    Rig rig;
    rig.bring_to(At::asking);
    late = rig.manager.trees.front();
  }
  late(descriptor_of(1));
}

TEST(Coordinator, StopsOnceAndGivesTheGroupBackOnce) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.coordinator.stop();
  rig.coordinator.stop();
  EXPECT_EQ(rig.said(), "releases 77");
  rig.wait(10min);
  EXPECT_EQ(rig.said(), "");
}

// ---- the lease

Rig& with_lease(Rig& rig, std::uint32_t seconds) {
  rig.start();
  auto descriptor = descriptor_of(1);
  descriptor.lease_seconds = seconds;
  rig.answer(descriptor);
  rig.from_all(rig.joined());
  rig.from_all(rig.next_operation(7));
  (void)rig.said();
  return rig;
}

TEST(Coordinator, RenewsItsLeaseThreeTimesBeforeItEnds) {
  Rig rig;
  with_lease(rig, 30).wait(9990ms);
  EXPECT_EQ(rig.said(), "");
  for (int i = 0; i < 3; ++i) {
    rig.wait(i == 0 ? 10ms : 10s);
    EXPECT_EQ(rig.said(), "renews 77");
    rig.answer_lease(GroupLease{});
  }
}

TEST(Coordinator, GoesOnRenewingWhileTheManagerIsOutOfReach) {
  Rig rig;
  with_lease(rig, 30);
  for (int i = 0; i < 5; ++i) {
    rig.wait(10s);
    EXPECT_EQ(rig.said(), "renews 77");
    rig.answer_lease(fail(Errc::unreachable, "nobody answers"));
  }
}

TEST(Coordinator, AForgottenGroupIsNotRenewedAnyMoreAndItsTreesStayInUse) {
  Rig rig;
  with_lease(rig, 30).wait(10s);
  EXPECT_EQ(rig.said(), "renews 77");
  rig.answer_lease(fail(Errc::bad_argument, "there is no group 77"));
  rig.wait(10min);
  EXPECT_EQ(rig.said(), "");
  rig.from(0, rig.lane_failed());
  rig.from_all(rig.holdings({5}));
  rig.wait(kSoon);
  EXPECT_EQ(rig.said(), "freeze; recover to each; asks for a group") << "the next trees belong to a new group";
}

// ---- late ranks

TEST(Coordinator, AsksOnceASecondWhileItsOperationsWaitAndTellsWhoIsLate) {
  CoordinatorSettings settings = Rig::usual();
  bool waits = false;
  std::vector<std::string> told;
  settings.waits = [&]() -> std::optional<CoordinatorSettings::Waiting> {
    if (!waits) return std::nullopt;
    return CoordinatorSettings::Waiting{.by_trees = true, .wait = {.operation = 3, .time = 5s}};
  };
  settings.tell_late = [&](const std::string& line, bool) { told.push_back(line); };
  settings.hosts = {"a", "b", "c"};
  Rig rig(settings);
  with_lease(rig, 30).wait(2s);
  EXPECT_EQ(rig.said(), "");
  waits = true;
  rig.wait(10ms);
  EXPECT_EQ(rig.said(), "renews 77");
  rig.wait(5s);
  EXPECT_EQ(rig.said(), "") << "the manager has not answered yet";
  rig.answer_lease(GroupLease{.late = {{.rank = 9}, {.rank = 2, .lag = 812ms, .operations_behind = 3}}});
  ASSERT_EQ(told.size(), 1U) << "there is no rank 9";
  EXPECT_EQ(told[0], "rank 2 on host c is late by 812 ms, 3 operations behind; 2 others wait");
  rig.wait(10ms);
  EXPECT_EQ(rig.said(), "renews 77");
  rig.answer_lease(GroupLease{});
  rig.wait(990ms);
  EXPECT_EQ(rig.said(), "");
  rig.wait(10ms);
  EXPECT_EQ(rig.said(), "renews 77");
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[1], "rank 2 on host c is no longer late");
}

TEST(Coordinator, AsksTheRanksAboutAnOperationThatNoTreeCarries) {
  CoordinatorSettings settings = Rig::usual();
  CoordinatorSettings::Waiting waiting{.by_trees = false,
                                       .wait = {.operation = 3, .time = LateInquiry::kAskAfter - 1ms}};
  std::vector<std::string> told;
  settings.waits = [&] { return std::optional(waiting); };
  settings.tell_late = [&](const std::string& line, bool) { told.push_back(line); };
  Rig rig(settings);
  rig.bring_to(At::resting);
  rig.wait(10ms);
  EXPECT_EQ(rig.said().find("inquiry"), std::string::npos);
  waiting.wait.time = LateInquiry::kAskAfter;
  rig.wait(10ms);
  EXPECT_NE(rig.said().find("inquiry 3"), std::string::npos);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) rig.from(rank, Rig::progress(3, {.called = rank != 1}));
  rig.wait(10ms);
  EXPECT_TRUE(told.empty()) << "it has stood still for less than a second";
  waiting.wait.time = LateInquiry::kAfter;
  rig.wait(20ms);
  EXPECT_NE(rig.said().find("inquiry 3"), std::string::npos) << "it asks again";
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) rig.from(rank, Rig::progress(3, {.called = rank != 1}));
  rig.wait(10ms);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("rank 1")) << told[0];
}

TEST(Coordinator, AsksTheWitnessesOfARankThatDoesNotAnswer) {
  CoordinatorSettings settings = Rig::usual();
  std::vector<std::string> told;
  settings.waits = [&] {
    return std::optional(CoordinatorSettings::Waiting{.by_trees = false, .wait = {.operation = 3, .time = 1s}});
  };
  settings.witnesses = [](std::uint32_t rank) { return std::vector<std::uint32_t>{rank - 1}; };
  settings.tell_late = [&](const std::string& line, bool) { told.push_back(line); };
  Rig rig(settings);
  rig.bring_to(At::resting);
  rig.wait(10ms);
  static_cast<void>(rig.said());
  for (const std::uint32_t rank : {0U, 1U}) rig.from(rank, Rig::progress(3, {.called = true}));
  rig.wait(witness_after(0));
  EXPECT_NE(rig.said().find("inquiry 3 of 1 about 2"), std::string::npos);
  rig.from(1, Rig::progress(3, {.sighting = Sighting{.rank = 2, .processor_wait = 90}}));
  rig.wait(LateInquiry::kAnswerLimit);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("rank 2")) << told[0];
  EXPECT_NE(told[0].find("waits for a processor"), std::string::npos) << told[0];
}

TEST(Coordinator, AsksTheRanksWhenAnotherRankSaysThatItWaits) {
  CoordinatorSettings settings = Rig::usual();
  std::vector<std::string> told;
  settings.tell_late = [&](const std::string& line, bool) { told.push_back(line); };
  Rig rig(settings);
  rig.bring_to(At::resting);
  rig.from(1, Rig::progress(3, {.called = true, .unasked = true}));
  rig.wait(10ms);
  EXPECT_NE(rig.said().find("inquiry 3"), std::string::npos);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) rig.from(rank, Rig::progress(3, {.called = rank != 0}));
  rig.wait(10ms);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with("rank 0")) << told[0];
}

// ---- the rates of trees in use

TEST(Coordinator, SaysWhenTheTreesInUseHaveOtherRates) {
  CoordinatorSettings settings = Rig::usual();
  std::vector<std::uint64_t> told;
  settings.rates_changed = [&](const PathRates& rates) { told.push_back(rates.trees); };
  Rig rig(settings);
  with_lease(rig, 30);
  const auto renewal_tells = [&](std::uint32_t epoch, std::uint64_t trees) {
    rig.wait(10s);
    rig.answer_lease(GroupLease{.epoch = epoch, .rates = {.links = 1000, .trees = trees, .ranks = 1000}});
    return std::exchange(told, {});
  };
  using Told = std::vector<std::uint64_t>;
  EXPECT_EQ(renewal_tells(1, 1000), Told{1000}) << "the descriptor named none";
  EXPECT_EQ(renewal_tells(1, 1000), Told{});
  EXPECT_EQ(renewal_tells(1, 950), Told{}) << "nearly the same";
  EXPECT_EQ(renewal_tells(1, 500), Told{500});
  EXPECT_EQ(renewal_tells(2, 250), Told{}) << "other trees, which the ranks do not have";
  EXPECT_EQ(renewal_tells(1, 550), Told{}) << "a tenth is near";
  EXPECT_EQ(renewal_tells(1, 1000), Told{1000});
  rig.wait(10s);
  rig.answer_lease(GroupLease{.epoch = 1});
  EXPECT_EQ(told, Told{}) << "a manager that knows none";
  rig.from(0, rig.lane_failed());
  EXPECT_EQ(renewal_tells(1, 500), Told{}) << "trees that are lost";
}

// ---- better trees

TEST(Coordinator, MovesToBetterTreesOnlyWhenTheyAreThere) {
  Rig rig;
  with_lease(rig, 30).wait(10s);
  rig.answer_lease(GroupLease{.better_trees = true, .why = "aggregator2 is back"});
  EXPECT_EQ(rig.said(), "renews 77; asks for better trees of 77 after epoch 1");
  rig.wait(5s);
  EXPECT_EQ(rig.said(), "");
  rig.answer(descriptor_of(2));
  EXPECT_EQ(rig.said(), "freeze to move");
  EXPECT_NE(rig.output.last.body.find("aggregator2 is back"), std::string::npos);
  rig.from_all(rig.holdings({5}));
  EXPECT_EQ(rig.said(), "recover to each; descriptor to each");
  rig.from_all(rig.joined());
  rig.from_all(rig.next_operation(12));
  EXPECT_EQ(rig.said(), "propose; commit 12");
}

TEST(Coordinator, StaysWhereThereAreNoBetterTrees) {
  const Result<GroupDescriptor> answers[] = {
      fail(Errc::unreachable, "nobody answers"),
      GroupDescriptor{.group = kGroup, .epoch = 2, .job = "", .reason = "", .lanes = {}}};
  for (const auto& answer : answers) {
    Rig rig;
    with_lease(rig, 30).wait(10s);
    rig.answer_lease(GroupLease{.better_trees = true, .why = ""});
    (void)rig.said();
    rig.answer(answer);
    EXPECT_EQ(rig.said(), "");
  }
}

TEST(Coordinator, BetterTreesThatComeAfterALossAreNotMovedTo) {
  Rig rig;
  with_lease(rig, 30).wait(10s);
  rig.answer_lease(GroupLease{.better_trees = true, .why = ""});
  rig.from(1, rig.lane_failed());
  (void)rig.said();
  rig.answer(descriptor_of(2));
  EXPECT_EQ(rig.said(), "");
  rig.from_all(rig.holdings({5}));
  rig.wait(kSoon);
  EXPECT_EQ(rig.said(), "recover to each; asks for trees of 77 after epoch 2 without aggregator1")
      << "the request names the epoch that the manager has given";
}

TEST(Coordinator, AnAggregatorThatFailsDuringAMoveMayBeInBothTrees) {
  Rig rig;
  with_lease(rig, 30).wait(10s);
  rig.answer_lease(GroupLease{.better_trees = true, .why = ""});
  rig.answer(descriptor_of(2));
  rig.from(1, rig.lane_failed());
  (void)rig.said();
  rig.from_all(rig.holdings({5}));
  EXPECT_EQ(rig.said(), "recover to each");
}

TEST(Coordinator, GivesUpItsTreesWhenTheManagerTakesThem) {
  Rig rig;
  with_lease(rig, 30).wait(10s);
  rig.answer_lease(GroupLease{.better_trees = true, .leave = true, .why = "group 9 needs the place"});
  EXPECT_EQ(rig.said(), "renews 77; freeze to move");
  EXPECT_NE(rig.output.last.body.find("group 9 needs the place"), std::string::npos);
  rig.from_all(rig.holdings({5}));
  rig.wait(kSoon);
  EXPECT_EQ(rig.said(), "recover to each; asks for trees of 77 after epoch 1");
}

TEST(Coordinator, AsksForBetterTreesMoreAndMoreRarely) {
  auto settings = Rig::usual();
  settings.move_pause_first = 20s;
  settings.move_pause_last = 60s;
  Rig rig(settings);
  with_lease(rig, 3);
  std::vector<int> asked;  // times of the coordinator's requests, in seconds after the start
  for (int second = 1; second <= 300; ++second) {
    rig.wait(1s);
    while (!rig.manager.leases.empty()) rig.answer_lease(GroupLease{.better_trees = true, .why = ""});
    if (!rig.said().contains("better")) continue;
    asked.push_back(second);
    rig.answer(GroupDescriptor{});
  }
  ASSERT_GE(asked.size(), 4U);
  std::vector<int> pauses;
  for (std::size_t i = 1; i < asked.size(); ++i) pauses.push_back(asked[i] - asked[i - 1]);
  EXPECT_NEAR(pauses[0], 20, 1);
  EXPECT_NEAR(pauses[1], 40, 1);
  for (std::size_t i = 2; i < pauses.size(); ++i) EXPECT_NEAR(pauses[i], 60, 1);
}

TEST(Coordinator, NeverMovesWhereTheFallbackIsForbidden) {
  auto settings = Rig::usual();
  settings.may_move = false;
  Rig rig(settings);
  with_lease(rig, 30).wait(10s);
  rig.answer_lease(GroupLease{.better_trees = true, .leave = true, .why = ""});
  EXPECT_EQ(rig.said(), "renews 77");
}

// ---- malformed bodies

TEST(Coordinator, MalformedReportsEndTheGroupAndNameTheirRank) {
  for (const char* body : {"", "x", "{}", R"(["a"])", "[-1]", "[1]", "[[1.5]]", "[[]]"}) {
    SCOPED_TRACE(body);
    Rig rig;
    rig.bring_to(At::freezing);
    auto message = rig.holdings({});
    message.body = body;
    rig.from(2, message);
    EXPECT_EQ(rig.said(), "abort: corrupt; releases 77");
    EXPECT_NE(rig.output.last.body.find("rank 2 on host gamma"), std::string::npos);
  }
  for (const char* body : {"", "x", "[]", "{}", R"({"called":1})"}) {
    SCOPED_TRACE(body);
    Rig rig;
    rig.bring_to(At::in_network);
    rig.from(1, Rig::stalled(3));
    (void)rig.said();
    rig.from(2, {.type = FrameType::progress, .operation = 3, .body = body});
    EXPECT_EQ(rig.said(), "abort: corrupt; releases 77");
    EXPECT_NE(rig.output.last.body.find("rank 2 on host gamma"), std::string::npos);
  }
}

}  // namespace
}  // namespace tributary::client
