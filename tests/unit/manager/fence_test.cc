// The number of the leadership in all texts that the manager signs.
#include "tests/unit/manager/cluster_fixture.h"
#include "tributary/protocol/credential.h"

namespace tributary::manager {
namespace {

using namespace std::chrono_literals;

class FenceTest : public ClusterFixture {
 protected:
  FenceTest() { store_.leadership = 40; }
  static std::uint64_t in_token(const GroupGrant& grant) {
    return read_claims(grant.descriptor.lanes.at(0).entries.at(0).tokens.front())->fence;
  }
};

TEST_F(FenceTest, IsInTokensDescriptorsAndPages) {
  open();
  enlist_all();
  const auto grant = ask();
  ASSERT_TRUE(grant.has_value());
  EXPECT_EQ(grant->descriptor.fence, 40U);
  EXPECT_EQ(in_token(*grant), 40U);
  const auto page = cluster_->places(grant->descriptor.group, 1, 0, 2);
  ASSERT_TRUE(page.has_value());
  for (const Token& token : page->lanes.at(0).at(1).tokens) EXPECT_EQ(read_claims(token)->fence, 40U);
}

TEST_F(FenceTest, ALowerFenceChangesNothing) {
  open();
  ASSERT_TRUE(cluster_->hear_fence(39).has_value());
  ASSERT_TRUE(cluster_->hear_fence(40).has_value());
  EXPECT_EQ(cluster_->fence(), 40U);
}

TEST_F(FenceTest, TheFenceOfAStoreFromABackupRisesAboveTheHighestThatWasSeen) {
  open();
  enlist_all();
  ASSERT_TRUE(cluster_->hear_fence(99).has_value());
  EXPECT_GT(cluster_->fence(), 99U);
  EXPECT_EQ(in_token(*ask()), cluster_->fence());
}

TEST_F(FenceTest, TheFenceOfARecordOfALaterLeadershipCounts) {
  open();
  enlist_all();
  store_.leadership = 70;
  const auto grant = ask();
  ASSERT_TRUE(grant.has_value());
  store_ = {};
  store_.leadership = 50;
  open();
  ASSERT_TRUE(cluster_->adopt_group(grant->descriptor.group, grant->record, nodes(4)).has_value());
  EXPECT_GT(cluster_->fence(), 70U);
}

TEST_F(FenceTest, AFenceThatNoClockCouldGiveIsRefused) {
  open();
  const auto day = static_cast<std::uint64_t>(clock_.unix_milliseconds()) + 24ULL * 3600 * 1000;
  EXPECT_EQ(cluster_->hear_fence(day + 1).error().code, Errc::bad_argument);
  EXPECT_EQ(cluster_->fence(), 40U);
  EXPECT_TRUE(cluster_->hear_fence(day).has_value());
}

TEST_F(FenceTest, AManagerWhoseLeadershipIsOverLearnsItFromAHigherOne) {
  const auto records = std::make_shared<MemoryStore>();
  SharedStore mine(records);
  auto old =
      Cluster::open(settings_, mine, key_, clock_, parse_topology(leaf_spine_yaml(2, 2, 1), "test.yaml").value());
  ASSERT_TRUE(old.has_value());
  SharedStore others(records);
  EXPECT_EQ((*old)->hear_fence(others.fence()).error().code, Errc::retry);
  EXPECT_LT((*old)->fence(), others.fence());
  EXPECT_EQ((*old)->create_group({.job = "job", .hosts = nodes(4), .lanes = 1}).error().code, Errc::retry);
}

}  // namespace
}  // namespace tributary::manager
