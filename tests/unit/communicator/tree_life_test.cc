// The states of trees, and the effect of rank 0's messages in each state, also of late and senseless messages.
#include "client/communicator/tree_life.h"

#include <nlohmann/json.hpp>

#include "tests/unit/communicator/part_rig.h"

namespace tributary::client {
namespace {

using TreeState = TreeLife::State;

class User final : public TreeUser {
 public:
  void leave_direct(Operation&) override { ++left; }
  void report_path(const std::string& reason, PathEvent) override { reasons.push_back(reason); }
  int left = 0;
  std::vector<std::string> reasons;
};

class TreeLifeTest : public PartTest {
 protected:
  TreeLifeTest() : PartTest(0, 1) {  // this rank is alone, so that a repair has nothing to move
    begin();
    pass(std::chrono::seconds(1));
    trees_.use(mesh_);
  }
  static nlohmann::json descriptor(std::uint32_t lanes = 2) {
    GroupDescriptor d;
    d.group = 7;
    d.epoch = 3;
    d.job = "job";
    for (std::uint32_t i = 0; i < lanes; ++i) {
      LaneDescriptor lane;
      lane.window = 4;
      lane.segment_bytes = 256;
      lane.levels = 1;
      lane.entries.push_back({.aggregator = {"leaf", 7471}, .aggregator_name = "leaf", .tokens = {Token{}}});
      d.lanes.push_back(std::move(lane));
    }
    return to_json(d);
  }
  void describe(std::uint32_t generation, const std::string& body = descriptor().dump()) {
    trees_.on_descriptor({.type = FrameType::descriptor, .epoch = generation, .body = body});
  }
  bool commit(std::uint32_t generation, std::uint64_t operation) {
    return trees_.on_commit({.type = FrameType::commit, .epoch = generation, .operation = operation});
  }
  void use(std::uint32_t generation, const std::string& body = descriptor().dump()) {
    describe(generation, body);
    trees_.on_propose({.type = FrameType::propose, .epoch = generation});
    ASSERT_TRUE(commit(generation, queue_.next_to_start()));
  }
  void freeze(std::uint32_t generation, const std::string& why = "an aggregator is gone") {
    trees_.on_freeze({.type = FrameType::freeze, .epoch = generation, .body = why});
  }
  /// Sends rank 0's plan for a single rank: it moves nothing.
  void recover(std::uint32_t generation) { recover(generation, queue_.next_to_start()); }
  void recover(std::uint32_t generation, std::uint64_t begun) {
    Moves moves(2);
    trees_.on_recover({.type = FrameType::recover, .epoch = generation, .operation = begun, .body = encode(moves)});
  }
  void announce_amendment() {
    EXPECT_FALSE(trees_.on_amendment({.type = FrameType::amend, .epoch = 1}, tuning::Policy()));
  }
  [[nodiscard]] std::string last_told() const {
    return whole_.to_rank_0.empty() ? "" : std::string(to_string(whole_.to_rank_0.back().type));
  }

  ManualWays ways_;
  OperationQueue queue_{ways_, 0};
  User user_;
  SecondWayUse second_way_{shared_};
  Directory directory_{0, 1};
  PeerMesh mesh_{second_way_.ways(), directory_, 0, Secret{}, std::chrono::seconds(5)};
  TreeLife trees_{shared_, user_, queue_, second_way_};
};

TEST_F(TreeLifeTest, TreesComeAreUsedAreLostAndAreRepaired) {
  EXPECT_EQ(trees_.state(), TreeState::none);
  use(1);
  EXPECT_EQ(trees_.state(), TreeState::in_use);
  EXPECT_FALSE(trees_.holding());
  freeze(1);
  EXPECT_EQ(trees_.state(), TreeState::frozen);
  EXPECT_TRUE(trees_.holding());
  EXPECT_EQ(last_told(), "holdings");
  EXPECT_EQ(user_.reasons.back(), "an aggregator is gone");
  EXPECT_EQ(shared_.info.failovers, 1U);
  recover(1);
  EXPECT_EQ(trees_.state(), TreeState::none);
  EXPECT_FALSE(trees_.holding());
  use(2);
  EXPECT_EQ(shared_.info.returns, 2U);
  EXPECT_TRUE(whole_.errors.empty());
}

TEST_F(TreeLifeTest, OperationsOnThemGoOnBetweenTheRanks) {
  use(1);
  std::vector<std::int32_t> send(16, 1), recv(16);
  ways_.ways = {Operation::State::in_network, Operation::State::in_network};
  Operation& o = add_operation(queue_, now_);
  o.send = reinterpret_cast<const std::byte*>(send.data());
  o.recv = reinterpret_cast<std::byte*>(recv.data());
  trees_.start(o);
  EXPECT_EQ(o.segments, 1U);
  freeze(1);
  recover(1);
  EXPECT_EQ(o.state, Operation::State::fallback);
  EXPECT_EQ(o.segments_in_network, 0U);
  ASSERT_EQ(ways_.remainders.size(), 1U);
  EXPECT_EQ(ways_.remainders[0], (std::pair<std::uint64_t, std::size_t>{0, 1})) << "the whole operation is left";
}

TEST_F(TreeLifeTest, OperationsThatOthersHaveBegunOnThemKeepTheirTerms) {
  use(1);
  Operation o;
  o.number = 0;
  ASSERT_NE(trees_.terms_for(o), nullptr);
  freeze(1);
  EXPECT_EQ(whole_.to_rank_0.back().operation, 0U) << "no operation has begun here";
  recover(1, 2);
  for (const std::uint64_t begun : {0U, 1U}) {
    o.number = begun;
    ASSERT_NE(trees_.terms_for(o), nullptr);
    EXPECT_EQ(trees_.terms_for(o)->segment_bytes, 256U);
  }
  o.number = 2;
  EXPECT_EQ(trees_.terms_for(o), nullptr);
}

TEST_F(TreeLifeTest, ARecoveryThatForgetsBegunOperationsEndsTheCommunicator) {
  use(1);
  ways_.ways = {Operation::State::in_network};
  add_operation(queue_, now_);
  freeze(1);
  recover(1, 0);
  ASSERT_EQ(whole_.errors.size(), 1U);
  EXPECT_NE(whole_.errors[0].message.find("operation 0"), std::string::npos) << whole_.errors[0].message;
}

TEST_F(TreeLifeTest, TheTuningBesideADescriptorHoldsForItsTrees) {
  nlohmann::json place = descriptor();
  place["tuning"] = tuning::encode(tuning::trees_always({.ranks = 4}));
  describe(1, place.dump());
  ASSERT_TRUE(commit(1, 0));
  Operation o;
  ASSERT_NE(trees_.terms_for(o), nullptr);
  EXPECT_NE(trees_.terms_for(o)->policy_of(0), nullptr);
  place["tuning"] = "{}";
  describe(2, place.dump());
  EXPECT_EQ(last_told(), "joined") << "the rank refuses the descriptor";
  EXPECT_FALSE(commit(2, 1));
}

TEST_F(TreeLifeTest, NothingStartsBetweenProposeAndCommit) {
  describe(1);
  EXPECT_FALSE(trees_.holding());
  trees_.on_propose({.type = FrameType::propose, .epoch = 1});
  EXPECT_TRUE(trees_.holding());
  EXPECT_EQ(last_told(), "next_operation");
  EXPECT_FALSE(commit(1, kNever)) << "the trees are given up";
  EXPECT_FALSE(trees_.holding());
  EXPECT_EQ(trees_.state(), TreeState::none);
}

tuning::Amendment amendment_to(tuning::Path path) {
  return {.collective = Collective::all_reduce,
          .above = 1024,
          .step = {.bytes_max = 4096, .path = path, .algorithm = tuning::Algorithm::ring}};
}

TEST_F(TreeLifeTest, AnAmendmentHoldsFromItsOperationOnAndNoneStartsUntilItComes) {
  const tuning::Policy welcome = tuning::trees_always({.ranks = 4});
  use(1);
  announce_amendment();
  EXPECT_TRUE(trees_.holding());
  EXPECT_EQ(last_told(), "next_operation");
  EXPECT_EQ(whole_.to_rank_0.back().operation, queue_.next_to_start());
  const auto amended = trees_.on_amendment({.type = FrameType::amended,
                                            .epoch = 1,
                                            .operation = 5,
                                            .body = tuning::encode(amendment_to(tuning::Path::ranks))},
                                           welcome);
  EXPECT_EQ(amended, amendment_to(tuning::Path::ranks));
  EXPECT_FALSE(trees_.holding());
  const TreeTerms& terms = trees_.trees()->terms;
  EXPECT_EQ(terms.policy_of(4), nullptr) << "earlier operations keep the welcome's";
  ASSERT_NE(terms.policy_of(5), nullptr);
  EXPECT_EQ(terms.policy_of(5)->at(Collective::all_reduce, 4096).path, tuning::Path::ranks);
  EXPECT_EQ(terms.policy_of(5)->at(Collective::all_reduce, 4097).path, tuning::Path::tree);
}

TEST_F(TreeLifeTest, LostTreesKeepTheAmendmentsForOperationsThatOthersHaveBegun) {
  const tuning::Policy welcome = tuning::trees_always({.ranks = 4});
  use(1);
  for (const auto& [from, path] : {std::pair{3U, tuning::Path::ranks}, std::pair{6U, tuning::Path::tree}}) {
    announce_amendment();
    (void)trees_.on_amendment(
        {.type = FrameType::amended, .epoch = 1, .operation = from, .body = tuning::encode(amendment_to(path))},
        welcome);
  }
  freeze(1);
  recover(1, 9);
  Operation o;
  const auto path_of = [&](std::uint64_t number) {
    o.number = number;
    const TreeTerms* const terms = trees_.terms_for(o);
    if (terms == nullptr) return std::string("none");
    const tuning::Policy* const policy = terms->policy_of(number);
    return std::string(policy == nullptr ? "welcome" : tuning::name(policy->at(Collective::all_reduce, 4096).path));
  };
  EXPECT_EQ(path_of(2), "welcome");
  EXPECT_EQ(path_of(3), "ranks");
  EXPECT_EQ(path_of(5), "ranks");
  EXPECT_EQ(path_of(6), "tree");
  EXPECT_EQ(path_of(9), "none");
}

TEST_F(TreeLifeTest, PoliciesThatNoOperationNeedsAnyMoreAreForgotten) {
  TreeTerms terms;
  const tuning::Policy welcome;
  for (std::uint64_t i = 1; i <= 100; ++i) terms.amend(10 * i, amendment_to(tuning::Path::ranks), welcome, 10 * i - 5);
  EXPECT_EQ(terms.policies.size(), 2U)
      << "there is a policy for the operations that have yet to start, and the newest one";
  EXPECT_EQ(terms.policies[0].first_operation, 990U);
}

TEST_F(TreeLifeTest, AnAmendmentThatWasDroppedOrComesLateChangesNothing) {
  const tuning::Policy welcome;
  const ControlMessage amended{.type = FrameType::amended,
                               .epoch = 1,
                               .operation = 5,
                               .body = tuning::encode(amendment_to(tuning::Path::ranks))};
  announce_amendment();
  EXPECT_EQ(whole_.to_rank_0.back().operation, kNever) << "these trees are not used yet";
  EXPECT_FALSE(trees_.holding());
  EXPECT_FALSE(trees_.on_amendment(amended, welcome));
  use(1);
  EXPECT_FALSE(trees_.on_amendment(amended, welcome)) << "the amendment was not announced";
  announce_amendment();
  ControlMessage dropped = amended;
  dropped.operation = kNever;
  EXPECT_FALSE(trees_.on_amendment(dropped, welcome));
  EXPECT_FALSE(trees_.holding());
  announce_amendment();
  freeze(1);
  recover(1);
  EXPECT_FALSE(trees_.holding());
  EXPECT_FALSE(trees_.on_amendment(amended, welcome));
  EXPECT_TRUE(whole_.errors.empty());
}

TEST_F(TreeLifeTest, AnAmendmentThatMakesNoSenseEndsTheCommunicator) {
  const tuning::Policy welcome;
  use(1);
  ways_.ways = {Operation::State::in_network};
  add_operation(queue_, now_);
  const auto amend = [&](std::uint64_t from, const std::string& body) {
    announce_amendment();
    return trees_.on_amendment({.type = FrameType::amended, .epoch = 1, .operation = from, .body = body}, welcome);
  };
  EXPECT_FALSE(amend(0, tuning::encode(amendment_to(tuning::Path::ranks))));
  EXPECT_FALSE(amend(1, "{}"));
  ASSERT_EQ(whole_.errors.size(), 2U);
  EXPECT_EQ(whole_.errors[0].message, "rank 0 sent an amendment from operation 0 on, and operation 0 has begun");
  EXPECT_EQ(whole_.errors[1].message, "rank 0 sent a malformed amendment: collective");
}

TEST_F(TreeLifeTest, AProposalWaitsForTheRepair) {
  use(1);
  freeze(1);
  describe(2);
  const std::size_t told = whole_.to_rank_0.size();
  trees_.on_propose({.type = FrameType::propose, .epoch = 2});
  EXPECT_EQ(whole_.to_rank_0.size(), told);
  recover(1);
  EXPECT_EQ(last_told(), "next_operation");
  EXPECT_TRUE(trees_.holding());
  EXPECT_TRUE(commit(2, 0));
}

TEST_F(TreeLifeTest, StaleMessagesChangeNothing) {
  use(2);
  freeze(1);
  EXPECT_EQ(trees_.state(), TreeState::in_use);
  recover(2);
  EXPECT_EQ(trees_.state(), TreeState::in_use) << "nothing is frozen";
  freeze(2);
  recover(1);
  EXPECT_EQ(trees_.state(), TreeState::frozen);
  freeze(2);
  EXPECT_EQ(shared_.info.failovers, 1U) << "the trees were frozen once";
  trees_.on_propose({.type = FrameType::propose, .epoch = 9});
  EXPECT_FALSE(commit(9, 0));
  EXPECT_EQ(trees_.state(), TreeState::frozen);
}

TEST_F(TreeLifeTest, ACommitThatMakesNoSenseEndsTheCommunicator) {
  use(1);
  freeze(1);
  describe(2);
  EXPECT_FALSE(commit(2, 0));
  ASSERT_EQ(whole_.errors.size(), 1U);
  EXPECT_EQ(whole_.errors[0].code, Errc::corrupt);
  EXPECT_EQ(trees_.state(), TreeState::frozen);
  recover(1);
  add_operation(queue_, now_);
  describe(3);
  EXPECT_FALSE(commit(3, 0)) << "operation 0 has begun";
  EXPECT_EQ(whole_.errors.size(), 2U);
}

TEST_F(TreeLifeTest, MovesThatMakeNoSenseEndTheCommunicator) {
  use(1);
  freeze(1);
  trees_.on_recover({.type = FrameType::recover, .epoch = 1, .body = "rubbish"});
  ASSERT_EQ(whole_.errors.size(), 1U);
}

TEST_F(TreeLifeTest, ADescriptorWithFaultsIsRefused) {
  const auto refused = [&](const std::string& body) {
    describe(1, body);
    EXPECT_EQ(last_told(), "joined");
    return decode_lane_failure(whole_.to_rank_0.back().body).reason;
  };
  EXPECT_NE(refused("rubbish"), "");
  EXPECT_EQ(refused(descriptor(0).dump()), "a descriptor without this rank's part");
  auto uneven = descriptor();
  uneven["lanes"][1]["segment_bytes"] = 512;
  EXPECT_EQ(refused(uneven.dump()), "the lanes differ in segment size");
  for (const nlohmann::json& weight : {nlohmann::json(0), nlohmann::json(65), nlohmann::json(-1), nlohmann::json(1.5),
                                       nlohmann::json("1"), nlohmann::json(UINT64_MAX)}) {
    auto odd = descriptor();
    odd["lanes"][1]["weight"] = weight;
    EXPECT_NE(refused(odd.dump()).find("lanes[1].weight"), std::string::npos) << weight;
  }
  EXPECT_FALSE(commit(1, 0)) << "no trees are forming";
}

TEST_F(TreeLifeTest, LanesMayDifferInWindowAndWeight) {
  auto body = descriptor(3);
  body["lanes"][0]["weight"] = 4;
  body["lanes"][1]["window"] = 8;
  body["lanes"][2]["weight"] = 2;  // lane 1 has no weight, which means 1
  use(1, body.dump());
  const Trees& trees = *trees_.trees();
  EXPECT_EQ(trees.terms.cycle, 7U);
  EXPECT_EQ(trees.lanes[1]->descriptor().window, 8U);
  // Operation 0 has places 0 to 6 of the cycle.
  std::vector<int> taken(7, 0);
  for (const auto& lane : trees.lanes) {
    for (std::uint64_t s = lane->turns().first(0); s < 7; s = lane->turns().after(0, s)) ++taken[s];
  }
  EXPECT_EQ(taken, std::vector<int>(7, 1));
  EXPECT_EQ(trees.lanes[1]->turns().after(0, trees.lanes[1]->turns().first(0)) - trees.lanes[1]->turns().first(0), 7U);
}

TEST_F(TreeLifeTest, AMoveToBetterTreesIsNoFailover) {
  use(1);
  trees_.on_freeze({.type = FrameType::freeze, .epoch = 1, .value = kMoves, .body = "better trees are there"});
  EXPECT_EQ(trees_.state(), TreeState::frozen);
  EXPECT_EQ(shared_.info.failovers, 0U);
}

TEST_F(TreeLifeTest, AFailureLeavesNoTrees) {
  use(1);
  describe(2);
  trees_.fail();
  EXPECT_EQ(trees_.state(), TreeState::none);
  EXPECT_FALSE(commit(2, 0));
}

}  // namespace
}  // namespace tributary::client
