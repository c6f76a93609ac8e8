// Shared memory and hosts: a rank that takes no part in them although rank 0 says that all do; and the texts about
// paths.
#include "client/communicator/host_path.h"
#include "client/communicator/local_path.h"
#include "client/communicator/path_report.h"
#include "tests/unit/communicator/part_rig.h"

namespace tributary::client {
namespace {

class LocalPathTest : public PartTest {
 protected:
  LocalPath path_{shared_, [] {}};
};

TEST_F(LocalPathTest, WithoutAGroupItAgreesToAnyOtherPath) {
  EXPECT_TRUE(path_.agree({.type = FrameType::commit, .value = 0}));
  EXPECT_TRUE(path_.agree({.type = FrameType::commit, .value = kCommitHosts}));
  EXPECT_TRUE(whole_.errors.empty());
}

TEST_F(LocalPathTest, WithoutAGroupItCannotGoThere) {
  EXPECT_FALSE(path_.agree({.type = FrameType::commit, .value = kCommitLocal}));
  ASSERT_EQ(whole_.errors.size(), 1U);
  EXPECT_EQ(whole_.errors[0].message,
            "rank 1 has no part in the memory that the ranks of host node-1 share: it was not asked to; "
            "TRIBUTARY_LOCAL=off does without");
  ASSERT_EQ(whole_.to_rank_0.size(), 1U);
  EXPECT_EQ(whole_.to_rank_0[0].body, whole_.errors[0].message);
}

TEST_F(LocalPathTest, OpensNoPlaceForRanksOfSeveralHosts) {
  EXPECT_FALSE(path_.open({"a", "a", "b", "a"}, {"n", "n", "n", "n"}));
  EXPECT_FALSE(path_.open({"", "", "", ""}, {"n", "n", "n", "n"}));
  EXPECT_FALSE(path_.open({"a", "a", "a", "a"}, {"n", "m", "n", "n"}));
  EXPECT_FALSE(path_.open({"a", "a", "a", "a"}, {"n", "n", "n", "n"})) << "the settings do not let it";
}

class HostPathTest : public PartTest {
 protected:
  Directory directory_{1, 4};
  HostPath path_{
      shared_,
      {.service = nullptr, .directory = directory_, .done = {}, .met = {}, .path_changed = {}, .second_way = {}}};
};

TEST_F(HostPathTest, WithoutALevelItAgreesToAnyOtherPath) {
  EXPECT_TRUE(path_.agree({.type = FrameType::commit, .value = 0}));
  EXPECT_FALSE(path_.meeting() || path_.gave_up_in_time());
}

TEST_F(HostPathTest, WithoutALevelItCannotGoThere) {
  EXPECT_FALSE(path_.agree({.type = FrameType::commit, .value = kCommitHosts}));
  ASSERT_EQ(whole_.errors.size(), 1U);
  EXPECT_NE(whole_.errors[0].message.find("rank 1 has no part in what the ranks of host node-1 do together"),
            std::string::npos);
}

TEST_F(HostPathTest, AFailureIsHeardOnlyWhileThereIsALevel) {
  EXPECT_FALSE(path_.on_failure_told(2, {.type = FrameType::joined, .body = encode(LaneFailure{"", "why"})}));
}

TEST(PathLine, SaysWhatIsInUseAndWhyNot) {
  CommunicatorInfo info;
  describe_trees(nullptr, "no aggregator is free", info);
  EXPECT_EQ(path_line(info, nullptr, "node-1"), "in-network reduction not in use: no aggregator is free");
  describe_trees(nullptr, "", info);
  EXPECT_EQ(info.reason, "no aggregator is free") << "nothing new";
  Trees trees;
  trees.descriptor.epoch = 3;
  trees.terms.first_operation = 17;
  trees.descriptor.lanes.resize(2);
  trees.descriptor.lanes[0] = {.window = 8, .segment_bytes = 4096, .levels = 2, .entries = {}};
  describe_trees(&trees, "", info);
  EXPECT_TRUE(info.in_network);
  EXPECT_EQ(path_line(info, &trees, "node-1"),
            "in-network reduction in use: epoch 3, 2 lane(s), tree depth 2, window 8 x 4096 bytes, from operation 17");
  info.local = true;
  EXPECT_EQ(path_line(info, &trees, "node-1"),
            "collectives in shared memory of host node-1, in-network reduction not needed: in use");
}

}  // namespace
}  // namespace tributary::client
