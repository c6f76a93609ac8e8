// The worker accepts good joins, and refuses bad joins with the reason.
#include <gmock/gmock.h>

#include "tests/unit/aggregator/worker_rig.h"
#include "tributary/protocol/lane_memory.h"

namespace tributary::aggregator::test {
namespace {

using ::testing::HasSubstr;

class WorkerJoin : public WorkerTest {};

TEST_F(WorkerJoin, AForgedTokenIsRefused) {
  Host& root = aggregator("root");
  Bytes join = join_of({claims_of("root", 0, 2)});
  for (const std::size_t at : {8U, 200U, 300U}) {  // two claims, and the signature
    Bytes forged = join;
    forged[at] ^= std::byte{1};
    EXPECT_THAT(refusal_of(root, forged), HasSubstr("not signed by this cluster's manager")) << "byte " << at;
  }
  join.back() ^= std::byte{1};
  EXPECT_THAT(refusal_of(root, join), HasSubstr("unused bytes that are not zero"));
  const SigningKey other = *SigningKey::generate();
  EXPECT_THAT(refusal_of(root, encode({*other.sign(claims_of("root", 0, 2))})), HasSubstr("not signed"));
  expect_all_given_back(root);
  EXPECT_EQ(root.worker->metrics().joins_accepted, 0U);
  EXPECT_EQ(root.worker->metrics().joins_refused, 5U);
  EXPECT_EQ(root.worker->metrics().reasons.of(Reason::join_token_forged), 4U);
  EXPECT_EQ(root.worker->metrics().reasons.of(Reason::join_malformed), 1U);
}

TEST_F(WorkerJoin, AnExpiredTokenIsRefused) {
  Host& root = aggregator("root");
  const Bytes join = join_of({claims_of("root", 0, 1)});
  now_s_ += 121;
  EXPECT_THAT(refusal_of(root, join), HasSubstr("expired 1 s ago"));
}

TEST_F(WorkerJoin, ATokenForAnotherAggregatorIsRefused) {
  Host& root = aggregator("root");
  EXPECT_THAT(refusal_of(root, join_of({claims_of("elsewhere", 0, 1)})),
              HasSubstr("the token is for aggregator 'elsewhere', this is 'root'"));
}

TEST_F(WorkerJoin, AChainThatDoesNotFitItsFirstTokenIsRefused) {
  Host& root = aggregator("root");
  EXPECT_THAT(refusal_of(root, join_of({claims_of("root", 0, 1), claims_of("above", 0, 1)})),
              HasSubstr("is for a root"));
  TokenClaims inner = claims_of("root", 0, 1);
  inner.root = false;
  inner.parent_host = "above";
  EXPECT_THAT(refusal_of(root, join_of({inner})), HasSubstr("no token for the parent"));
  EXPECT_THAT(refusal_of(root, Bytes(kTokenBytes - 1)), HasSubstr("a token chain of "));
}

TEST_F(WorkerJoin, ATokenForTheParentOfAnotherLaneIsRefused) {
  Host& leaf = aggregator("leaf");
  TokenClaims own = claims_of("leaf", 0, 1);
  own.root = false;
  own.parent_host = "above";
  const auto with = [&](const std::function<void(TokenClaims&)>& change) {
    TokenClaims parent = claims_of("above", 0, 1);
    parent.kind = ChildKind::aggregator;
    change(parent);
    return refusal_of(leaf, join_of({own, parent}));
  };
  EXPECT_THAT(with([](TokenClaims& parent) { ++parent.group; }), HasSubstr("another group, epoch or lane"));
  EXPECT_THAT(with([](TokenClaims& parent) { ++parent.epoch; }), HasSubstr("another group, epoch or lane"));
  EXPECT_THAT(with([](TokenClaims& parent) { ++parent.lane; }), HasSubstr("another group, epoch or lane"));
  EXPECT_EQ(leaf.worker->metrics().joins_accepted, 0U);
}

TEST_F(WorkerJoin, ARankThatJoinsTwiceIsRefusedAndTheFirstGoesOn) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  EXPECT_THAT(refusal_of(root, join_of({claims_of("root", 1, 2)})), HasSubstr("child 1 (rank 1) has joined already"));
  for (std::uint32_t rank = 0; rank < 2; ++rank) ranks[rank]->contribute(0, kSum, bytes_of(floats(rank, 16)));
  EXPECT_TRUE(run_until([&] { return ranks[0]->results.size() == 1 && ranks[1]->results.size() == 1; }));
}

TEST_F(WorkerJoin, ARankThatHasLeftCannotComeBackWithTheSameToken) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  ranks[1]->leave();
  settle();
  ranks[1]->close();
  settle();
  EXPECT_THAT(refusal_of(root, join_of({claims_of("root", 1, 2)})), HasSubstr("has joined already"));
}

TEST_F(WorkerJoin, AJoinThatNamesAnotherGroupOrLaneThanItsTokenIsRefused) {
  Host& root = aggregator("root");
  const Bytes join = join_of({claims_of("root", 0, 2)});
  struct {
    std::uint64_t group;
    std::uint8_t lane;
    bool good;
  } const frames[] = {{kGroup + 1, 0, false}, {1, 0, false}, {kGroup, 1, false}, {kGroup, 0, true}};
  for (const auto& frame : frames) {
    Child& rank = child("rank0", root.endpoint(), {});
    FrameHeader header;
    header.type = FrameType::join;
    header.group = frame.group;
    header.lane = frame.lane;
    rank.send(header, join);
    settle();
    if (frame.good) {
      EXPECT_FALSE(rank.refused) << *rank.refused;
    } else {
      ASSERT_TRUE(rank.refused) << "group " << frame.group << ", lane " << int{frame.lane};
      EXPECT_EQ(*rank.refused, "the join frame names another group or lane than its token [join-token-elsewhere]");
    }
  }
  EXPECT_EQ(root.worker->metrics().joins_accepted, 1U);
}

TEST_F(WorkerJoin, ATokenThatDescribesTheLaneDifferentlyIsRefused) {
  Host& root = aggregator("root");
  child("rank0", root.endpoint(), join_of({claims_of("root", 0, 3)}));
  settle();
  const auto differs = [&](auto change) {
    TokenClaims claims = claims_of("root", 1, 3);
    change(claims);
    return refusal_of(root, join_of({claims}));
  };
  const auto said = HasSubstr("describes the lane differently");
  EXPECT_THAT(differs([](TokenClaims& c) { c.children = 2; }), said);
  EXPECT_THAT(differs([](TokenClaims& c) { c.window = 8; }), said);
  EXPECT_THAT(differs([](TokenClaims& c) { c.segment_bytes = 2048; }), said);
  EXPECT_THAT(differs([](TokenClaims& c) { c.ranks = 4; }), said);
  EXPECT_THAT(differs([](TokenClaims& c) { c.job = "another"; }), said);
}

TEST_F(WorkerJoin, ALaneThatDoesNotFitTheMemoryIsRefusedWithTheNumbers) {
  const std::uint64_t one_lane = lane_memory_bytes(2, kWindow, kSegmentBytes);
  Host& root = aggregator("root", one_lane + 100);
  lane_of(root, 2);
  EXPECT_EQ(root.budget.in_use(), one_lane);
  TokenClaims second = claims_of("root", 0, 2);
  second.group = kGroup + 1;
  EXPECT_EQ(refusal_of(root, join_of({second})), "aggregator root has 100 of " + std::to_string(one_lane + 100) +
                                                     " bytes left; this lane needs " + std::to_string(one_lane) +
                                                     " [no-memory]");
  EXPECT_EQ(root.worker->metrics().reasons.of(Reason::no_memory), 1U);
  EXPECT_EQ(root.budget.in_use(), one_lane);
}

TEST_F(WorkerJoin, ALaneThatHasEndedDoesNotComeBackInItsEpochButDoesInTheNext) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  ranks[0]->close();
  expect_all_given_back(root);
  EXPECT_THAT(refusal_of(root, join_of({claims_of("root", 0, 2)})), HasSubstr("this lane has ended in epoch 3"));
  TokenClaims next = claims_of("root", 0, 1);
  next.epoch = kEpoch + 1;
  Child& again = child("rank0", root.endpoint(), join_of({next}));
  EXPECT_TRUE(run_until([&] { return again.ready; }));
}

TEST_F(WorkerJoin, ASilentConnectionIsClosedInTime) {
  Host& root = aggregator("root", 1U << 20, {.join_limit = std::chrono::seconds(2)});
  Child& silent = child("stranger", root.endpoint(), {});
  EXPECT_TRUE(run_until([&] { return silent.closed.has_value(); }, std::chrono::seconds(3)));
  EXPECT_EQ(silent.refused, "no join came in time [join-late]");
  expect_all_given_back(root);
}

TEST_F(WorkerJoin, TheNumberOfConnectionsWithoutATokenIsBounded) {
  Host& root = aggregator("root", 1U << 20, {.sessions_unjoined_max = 3});
  for (int i = 0; i < 10; ++i) child("stranger", root.endpoint(), {});
  settle();
  EXPECT_EQ(root.worker->sessions(), 3U);
  EXPECT_EQ(root.worker->metrics().sessions_displaced, 7U);
}

TEST_F(WorkerJoin, WaitsForABoundedNumberOfRefusedChildrenToReadTheReason) {
  const Bytes bad(100);
  for (const std::uint32_t most : {0U, 10U}) {
    Host& root = aggregator("root" + std::to_string(most), 64U << 20, {.sessions_unjoined_max = most});
    Child& stranger = child("stranger" + std::to_string(most), root.endpoint(), bad);
    settle();
    EXPECT_EQ(root.worker->metrics().joins_refused, 1U);
    EXPECT_EQ(stranger.refused.has_value(), most > 0);
    EXPECT_EQ(root.worker->sessions(), 0U);
  }
}

TEST_F(WorkerJoin, AFloodOfSilentConnectionsKeepsNobodyOut) {
  Host& root = aggregator("root", 64U << 20, {.sessions_unjoined_max = 3});
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 10; ++i) child("stranger", root.endpoint(), {});
    settle();                             // all places are taken
    const auto ranks = lane_of(root, 2);  // children that join, and that the worker serves
    EXPECT_EQ(ranks.size(), 2U);
    next_epoch();
  }
  settle();
  EXPECT_EQ(root.worker->metrics().joins_accepted, 10U);
  EXPECT_LE(root.worker->sessions(), 3U + 10U);
}

TEST_F(WorkerJoin, StrangersFromOneAddressMakeRoomForEachOtherNotTheOthers) {
  Host& root = aggregator("root", 64U << 20, {.sessions_unjoined_max = 16});
  Child& quiet = child("slow rank", root.endpoint(), {});
  settle();
  for (int i = 0; i < 100; ++i) child("stranger", root.endpoint(), {});
  settle();
  EXPECT_FALSE(quiet.closed);
  EXPECT_EQ(root.worker->sessions(), 16U);
}

TEST_F(WorkerJoin, ALaneThatDoesNotFormInTimeFailsAndSaysWhoWasMissing) {
  Host& root = aggregator("root", 1U << 20, {.form_limit = std::chrono::seconds(1)});
  Child& first = child("rank0", root.endpoint(), join_of({claims_of("root", 0, 3)}));
  Child& second = child("rank1", root.endpoint(), join_of({claims_of("root", 1, 3)}));
  EXPECT_TRUE(run_until([&] { return first.failed && second.failed; }, std::chrono::seconds(2)));
  EXPECT_THAT(first.failed.value_or(""), HasSubstr("did not form in time: 2 of 3 children joined"));
  expect_all_given_back(root);
}

TEST_F(WorkerJoin, AnAggregatorThatDrainsTakesNoNewLanesAndSendsItsGroupsToTheFallback) {
  Host& root = aggregator("root");
  const auto ranks = lane_of(root, 2);
  root.worker->drain("maintenance at noon");
  EXPECT_TRUE(run_until([&] { return ranks[0]->failed && ranks[1]->failed; }));
  EXPECT_THAT(ranks[0]->failed.value_or(""), HasSubstr("aggregator root drains: maintenance at noon"));
  TokenClaims other = claims_of("root", 0, 1);
  other.group = kGroup + 1;
  EXPECT_THAT(refusal_of(root, join_of({other})), HasSubstr("takes no new lanes: maintenance at noon"));
  expect_all_given_back(root);
}

TEST_F(WorkerJoin, AConnectionWhoseJoinWasVerifiedElsewhereIsServedAsAnyOther) {
  transport::Transport& transport = network_.transport("root");
  MemoryBudget budget(1U << 20);
  Worker worker(transport, budget, {.name = "root"});
  // The front door of the daemon does the same over a file descriptor; here the channel only changes its handler.
  struct Front final : transport::Acceptor, transport::ChannelHandler {
    explicit Front(Worker& w) : served_by(w) {}
    transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> accepted) override {
      channel = std::move(accepted);
      return this;
    }
    transport::Placement on_header(transport::Channel&, const FrameHeader& header) override {
      if (next != nullptr) return next->on_header(*raw, header);
      payload.resize(header.payload_bytes);
      return transport::Accept{payload};
    }
    void on_frame(transport::Channel&, const FrameHeader& header, std::span<std::byte> bytes) override {
      if (next != nullptr) return next->on_frame(*raw, header, bytes);
      raw = channel.get();
      served_by.take({claims, {}}, [this](transport::ChannelHandler& handler) {
        next = &handler;
        return std::move(channel);
      });
    }
    void on_closed(transport::Channel&, const Error& error) override {
      if (next != nullptr) next->on_closed(*raw, error);
    }
    Worker& served_by;
    TokenClaims claims;
    std::unique_ptr<transport::Channel> channel;
    transport::Channel* raw = nullptr;
    transport::ChannelHandler* next = nullptr;
    Bytes payload;
  } front(worker);
  front.claims = claims_of("root", 0, 1);
  auto listener = transport.listen({"0.0.0.0", kPort}, front);
  ASSERT_TRUE(listener);
  Child& rank = child("rank0", {"root", kPort}, join_of({front.claims}));
  ASSERT_TRUE(run_until([&] { return rank.ready; }));
  rank.contribute(0, kSum, bytes_of(floats(0, 16)));
  EXPECT_TRUE(run_until([&] { return rank.results.size() == 1; }));
  EXPECT_EQ(worker.metrics().joins_accepted, 1U);
}

}  // namespace
}  // namespace tributary::aggregator::test
