// The rank that rank 0's coordinator names when an operation does not end, from the ranks' answers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>

#include "tests/unit/communicator/coordinator_rig.h"

namespace tributary::client {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kOperation = 3;
constexpr Signature kSum{Collective::all_reduce, DType::float32, ReduceOp::sum, 0, 100};
constexpr Signature kMax{Collective::all_reduce, DType::float32, ReduceOp::max, 0, 100};

/// The answer of one rank; nullopt: it does not answer.
using Answer = std::optional<Progress>;

Progress waiting_for_tree() {
  return {.called = true, .waits_for_tree = true, .oldest = kOperation, .waits_for = "segment 1 of lane 0"};
}
Progress has_it() {
  return {.called = true, .ended = true};
}
Progress not_called() {
  return {};
}
Progress busy(std::uint64_t steps) {
  return {.called = true, .oldest = kOperation, .steps = steps, .waits_for = "round " + std::to_string(steps)};
}
Progress stood_still(Progress progress, std::uint64_t ms) {
  progress.stood_still_ms = ms;
  return progress;
}
Progress held_up_in(std::uint64_t earlier) {
  return {.oldest = earlier, .waits_for = "an earlier one"};
}
Progress with(Progress progress, const Signature& signature) {
  progress.signature_known = true;
  progress.signature = signature;
  return progress;
}

struct Case {
  const char* name;
  At state;
  std::uint64_t kind;
  std::array<Answer, kRanks> answers;
  const char* said;
  const char* body;  // a part of the message
};

std::vector<Case> cases() {
  const Progress tree = waiting_for_tree();
  const char* const kBlame = "abort: timed out; releases 77";
  return {
      {"nobody answers",
       At::in_network,
       0,
       {},
       kBlame,
       "rank 0 on host alpha, rank 1 on host beta, rank 2 on host gamma: no answer"},
      {"one does not answer", At::in_network, 0, {tree, tree, {}}, kBlame, "rank 2 on host gamma: no answer"},
      {"one has not called it",
       At::in_network,
       0,
       {tree, tree, not_called()},
       kBlame,
       "rank 2 on host gamma: did not call operation 3, where rank 1 on host beta waits: segment 1 of lane 0"},
      {"one is held up before", At::in_network, 0, {tree, tree, held_up_in(1)}, "inquiry 1", ""},
      {"the tree hangs", At::in_network, 0, {tree, tree, tree}, "freeze", "an aggregator hangs"},
      {"the tree hangs for some", At::in_network, 0, {has_it(), tree, has_it()}, "freeze", "an aggregator hangs"},
      {"one of them has not contributed", At::in_network, 0, {tree, tree, busy(2)}, kBlame, ""},
      {"no tree is in use", At::resting, 0, {tree, tree, tree}, kBlame, "furthest behind"},
      {"one is behind",
       At::resting,
       0,
       {busy(5), busy(2), busy(7)},
       kBlame,
       "rank 1 on host beta: furthest behind, at round 2, in operation 3"},
      {"one stood still, and was first when it went on",
       At::resting,
       0,
       {busy(5), busy(2), stood_still(busy(7), 59'500)},
       kBlame,
       "rank 2 on host gamma stood still for 59.5 s; missing in operation 3"},
      {"a rank that has the result is not behind",
       At::resting,
       0,
       {has_it(), busy(9), has_it()},
       kBlame,
       "rank 1 on host beta"},
      {"they called different things",
       At::in_network,
       0,
       {with(tree, kSum), with(tree, kSum), with(busy(1), kMax)},
       "abort: mismatch; releases 77",
       "rank 2"},
      {"a rank that has not called it disagrees with nobody",
       At::in_network,
       0,
       {with(tree, kSum), with(tree, kSum), not_called()},
       kBlame,
       "did not call"},
      // a suspicion: no rank is to blame yet
      {"suspicion, nobody answers", At::in_network, kSuspicion, {}, "", ""},
      {"suspicion, one does not answer", At::in_network, kSuspicion, {tree, tree, {}}, "", ""},
      {"suspicion, one has not called it", At::in_network, kSuspicion, {tree, tree, not_called()}, "", ""},
      {"suspicion, the tree hangs", At::in_network, kSuspicion, {tree, tree, tree}, "freeze", "an aggregator hangs"},
      {"suspicion, one is behind", At::resting, kSuspicion, {busy(5), busy(2), busy(7)}, "", ""},
      {"suspicion, they called different things",
       At::in_network,
       kSuspicion,
       {with(tree, kSum), with(busy(1), kMax), {with(tree, kSum)}},
       "abort: mismatch; releases 77",
       "rank 1"},
      // a disagreement: only the ranks' calls matter
      {"disagreement indeed",
       At::resting,
       kDisagreement,
       {with(busy(1), kSum), with(busy(1), kMax), not_called()},
       "abort: mismatch; releases 77",
       "rank 1"},
      {"disagreement seen by one alone",
       At::resting,
       kDisagreement,
       {with(busy(1), kSum), with(busy(1), kSum), not_called()},
       "",
       ""},
      {"disagreement, held up before",
       At::resting,
       kDisagreement,
       {with(busy(1), kSum), with(busy(1), kSum), held_up_in(1)},
       "",
       ""},
  };
}

TEST(Inquiry, NamesTheRankThatIsToBlameAndNoOther) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    auto settings = Rig::usual();
    settings.retry_first = settings.retry_last = 1h;  // so that the coordinator stays in `resting`
    Rig rig(settings);
    rig.bring_to(c.state);
    rig.from(1, Rig::stalled(kOperation, c.kind));
    ASSERT_EQ(rig.said(), "inquiry 3");
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (c.answers[rank]) rig.from(rank, Rig::progress(kOperation, *c.answers[rank]));
    }
    const bool all = std::ranges::all_of(c.answers, [](const Answer& a) { return a.has_value(); });
    if (!all) {
      rig.wait(990ms);
      EXPECT_EQ(rig.said(), "") << "the limit is not over yet";
      rig.wait(10ms);
    }
    EXPECT_EQ(rig.said(), c.said);
    if (*c.said != '\0') {
      EXPECT_NE(rig.output.last.body.find(c.body), std::string::npos) << rig.output.last.body;
    }
  }
}

TEST(Inquiry, ARankThatDelaysAnEarlierOperationIsAskedAboutThisOperation) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from(1, Rig::stalled(kOperation));
  rig.from(0, Rig::progress(kOperation, waiting_for_tree()));
  rig.from(1, Rig::progress(kOperation, waiting_for_tree()));
  rig.from(2, Rig::progress(kOperation, held_up_in(1)));
  EXPECT_EQ(rig.said(), "inquiry 3; inquiry 1");
  rig.from(0, Rig::progress(1, has_it()));
  rig.from(1, Rig::progress(kOperation, waiting_for_tree()));  // a late answer to the previous inquiry
  rig.from(1, Rig::progress(1, has_it()));
  EXPECT_EQ(rig.said(), "");
  rig.from(2, Rig::progress(1, {.called = true, .oldest = 1, .steps = 4, .waits_for = "rank 0 in round 4"}));
  EXPECT_EQ(rig.said(), "abort: timed out; releases 77");
  EXPECT_NE(rig.output.last.body.find("rank 2 on host gamma: furthest behind, at rank 0 in round 4, in operation 1"),
            std::string::npos)
      << rig.output.last.body;
}

TEST(Inquiry, OneInquiryRunsAtATimeUnlessTheNextIsMoreUrgent) {
  struct {
    std::uint64_t first, second;
    const char* said;
  } const pairs[] = {
      {0, 0, ""},
      {0, kSuspicion, ""},
      {0, kDisagreement, "inquiry 5"},
      {kSuspicion, 0, "inquiry 5"},
      {kSuspicion, kSuspicion, ""},
      {kSuspicion, kDisagreement, "inquiry 5"},
      {kDisagreement, 0, ""},
      {kDisagreement, kSuspicion, ""},
      {kDisagreement, kDisagreement, ""},
  };
  for (const auto& pair : pairs) {
    SCOPED_TRACE(std::to_string(pair.first) + " then " + std::to_string(pair.second));
    Rig rig;
    rig.bring_to(At::in_network);
    rig.from(1, Rig::stalled(kOperation, pair.first));
    (void)rig.said();
    rig.from(2, Rig::stalled(5, pair.second));
    EXPECT_EQ(rig.said(), pair.said);
  }
}

TEST(Inquiry, EachRankAnswersOnlyForItself) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from(1, Rig::stalled(kOperation));
  (void)rig.said();
  for (int i = 0; i < 3; ++i) rig.from(1, Rig::progress(kOperation, waiting_for_tree()));
  EXPECT_EQ(rig.said(), "") << "three answers of one rank count once";
}

TEST(Inquiry, AGroupThatHasEndedIsAskedNothingMore) {
  Rig rig;
  rig.bring_to(At::in_network);
  rig.from(1, Rig::stalled(kOperation));
  rig.coordinator.stop();
  (void)rig.said();
  rig.from(0, Rig::progress(kOperation, waiting_for_tree()));
  rig.from(1, Rig::progress(kOperation, waiting_for_tree()));
  rig.from(2, Rig::progress(kOperation, held_up_in(1)));
  rig.wait(1min);
  EXPECT_EQ(rig.said(), "");
}

TEST(Inquiry, ManyLateRanksAreNotNamedOneByOne) {
  auto settings = Rig::usual();
  settings.nranks = 40;
  settings.hosts.assign(40, "a");
  settings.use_trees = false;
  Rig rig(settings);
  rig.start();
  rig.from(1, Rig::stalled(kOperation));
  for (std::uint32_t rank = 0; rank < 20; ++rank) rig.from(rank, Rig::progress(kOperation, busy(1)));
  rig.wait(1s);
  EXPECT_EQ(rig.said(), "commit never; inquiry 3; abort: timed out");
  EXPECT_NE(rig.output.last.body.find("and 12 more: no answer"), std::string::npos) << rig.output.last.body;
}

TEST(Inquiry, RanksAreNamedAsPeopleKnowThem) {
  auto settings = Rig::usual();
  settings.known_as = {4, 9, 17};
  settings.use_trees = false;
  Rig rig(settings);
  rig.start();
  rig.coordinator.on_rank_gone(1, "its connection broke");
  EXPECT_EQ(rig.output.last.body, "rank 9 on host beta is gone: its connection broke");
}

}  // namespace
}  // namespace tributary::client
