#include "client/plugins/jax/members.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "client/plugins/jax/abi.h"

namespace tributary::jax {
namespace {

TEST(JaxMembers, TheRanksOfAColorAreOrderedByTheirKeys) {
  const std::array<SplitArguments, 4> all{{{0, 1}, {7, 0}, {0, 0}, {7, 1}}};

  const Members first = members_of(all, 0);

  EXPECT_EQ(first.ranks, (std::vector{2, 0}));
  EXPECT_EQ(first.rank, 1);
  EXPECT_EQ(first.refusal, "");
  EXPECT_EQ(members_of(all, 2).rank, 0);
  EXPECT_EQ(members_of(all, 3).ranks, (std::vector{1, 3}));
}

TEST(JaxMembers, ARankWithoutAColorHasNoMembers) {
  const std::array<SplitArguments, 2> all{{{kUndefined, 0}, {5, 0}}};

  EXPECT_TRUE(members_of(all, 0).ranks.empty());
  EXPECT_EQ(members_of(all, 0).refusal, "");
  EXPECT_EQ(members_of(all, 1).ranks, std::vector{1});
}

// Process 0 has the first and the third device of a communicator of four: its first call says key 0, the other process'
// key 2.
TEST(JaxMembers, ProcessesWithTwoDevicesAreRefusedOnAllRanks) {
  const std::array<SplitArguments, 2> all{{{0, 0}, {0, 2}}};

  for (const int rank : {0, 1}) {
    EXPECT_NE(members_of(all, rank).refusal.find("process 1 takes part as rank 2"), std::string::npos);
  }
}

// Two processes begin a communicator of rows while the others begin one of columns.
TEST(JaxMembers, RanksThatMeanDifferentCommunicatorsAreRefused) {
  const std::array<SplitArguments, 4> all{{{0, 0}, {1, 0}, {0, 1}, {0, 1}}};

  EXPECT_NE(members_of(all, 0).refusal, "");
  EXPECT_EQ(members_of(all, 1).refusal, "");
}

}  // namespace
}  // namespace tributary::jax
