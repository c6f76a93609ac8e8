#include "client/communicator/division.h"

#include <gtest/gtest.h>

#include <array>

namespace tributary::client {
namespace {

using tuning::kWholeShare;
using tuning::Path;
using tuning::Step;

tuning::Policy policy_with(const Step& step) {
  std::array<tuning::Steps, kCollectiveCount> steps;
  for (tuning::Steps& one : steps) one = {step};
  return tuning::Policy(std::move(steps));
}

Operation sum_of(std::uint64_t count, Collective collective = Collective::all_reduce) {
  Operation o;
  o.signature = {collective, DType::float32, ReduceOp::sum, 0, count};
  return o;
}

class DivisionTest : public testing::TestWithParam<std::uint32_t> {
 protected:
  const tuning::Policy policy_ = policy_with({UINT64_MAX, Path::split, schedule::Algorithm::ring, GetParam()});
  const DivisionTerms terms_{.policy = &policy_, .nranks = 4, .segment_bytes = 1024, .lanes = 3, .cycle = 3};
};

// The two parts cover the whole exactly once, whatever the share and the length.
TEST_P(DivisionTest, TheTwoPartsAreTheWhole) {
  std::array<std::byte, 8> buffer{};
  for (const std::uint64_t count : {1U, 255U, 256U, 257U, 1000U, 25'600U, 1'000'003U}) {
    Operation o = sum_of(count);
    o.send = o.recv = buffer.data();
    const Division division = divide(o, terms_);
    if (!division.cut) continue;
    const Piece first = trees_part(o, *division.cut);
    const Piece second = ranks_part(o, *division.cut);
    EXPECT_EQ(first.count + second.count, count);
    EXPECT_EQ(first.send, o.send);
    EXPECT_EQ(second.send, o.send + first.count * sizeof(float));
    EXPECT_EQ(second.recv, o.recv + first.count * sizeof(float));
    EXPECT_EQ(first.count % 256, 0U) << "the trees carry whole segments";
    const double share = static_cast<double>(GetParam()) / kWholeShare;
    EXPECT_NEAR(static_cast<double>(first.count), share * static_cast<double>(count), 2 * 256) << count;
    EXPECT_TRUE(first.count < 3U * 256 || first.count % (3U * 256) == 0) << "as many segments on each lane: " << count;
  }
}

// The ranks' part uses the algorithm for a call of its own length, by the policy of the trees in use. It does not use
// the algorithm for the whole call, because some of the call's bytes go by the trees.
TEST(Division, TheRanksPartHasTheAlgorithmForItsBytes) {
  std::array<tuning::Steps, kCollectiveCount> steps;
  for (tuning::Steps& one : steps) {
    one = {{40'000, Path::ranks, schedule::Algorithm::halving_doubling},
           {UINT64_MAX, Path::split, schedule::Algorithm::ring, kWholeShare / 2}};
  }
  const tuning::Policy policy(std::move(steps));
  const DivisionTerms terms{.policy = &policy, .nranks = 4, .segment_bytes = 1024, .lanes = 1, .cycle = 1};
  std::array<std::byte, 8> buffer{};
  const auto of = [&](std::uint64_t count) {
    Operation o = sum_of(count);
    o.send = o.recv = buffer.data();
    const Division division = divide(o, terms);
    return division.cut ? ranks_part(o, *division.cut).algorithm : division.algorithm;
  };
  EXPECT_EQ(of(9'000), schedule::Algorithm::halving_doubling) << "the ranks carry all of it";
  EXPECT_EQ(of(16'384), schedule::Algorithm::halving_doubling) << "64 KiB, and 32 KiB between the ranks";
  EXPECT_EQ(of(32'768), schedule::Algorithm::ring) << "128 KiB, and 64 KiB between the ranks";
  Operation o = sum_of(16'384);
  o.send = o.recv = buffer.data();
  EXPECT_FALSE(trees_part(o, *divide(o, terms).cut).algorithm) << "if trees are lost, the group's policy decides";
}

INSTANTIATE_TEST_SUITE_P(Shares, DivisionTest,
                         testing::Values(1U, 100U, kWholeShare / 3, kWholeShare / 2, kWholeShare - 1));

// Whole cycles give each lane exactly its share, but a long cycle must not move the trees' share by much.
TEST(Division, TakesWholeCyclesOnlyWhereTheyAreNear) {
  const auto segments_of_trees = [](std::uint32_t lanes, std::uint32_t cycle, std::uint64_t wanted) {
    const auto share = static_cast<std::uint32_t>(wanted * kWholeShare / 1000);
    const auto policy = policy_with({UINT64_MAX, Path::split, schedule::Algorithm::ring, share});
    const DivisionTerms terms{.policy = &policy, .nranks = 4, .segment_bytes = 1024, .lanes = lanes, .cycle = cycle};
    return divide(sum_of(256'000), terms).cut->segments;
  };
  EXPECT_EQ(segments_of_trees(4, 4, 402), 404U);
  EXPECT_EQ(segments_of_trees(4, 40, 402), 400U);
  EXPECT_EQ(segments_of_trees(4, 40, 410), 410U);
  EXPECT_EQ(segments_of_trees(4, 40, 439), 440U);
  EXPECT_EQ(segments_of_trees(4, 40, 39), 39U) << "the operation is shorter than a cycle";
}

TEST(Division, AnOperationOfOneSegmentIsNotDivided) {
  const auto policy = policy_with({UINT64_MAX, Path::split, schedule::Algorithm::ring, kWholeShare / 4});
  const DivisionTerms terms{.policy = &policy, .nranks = 4, .segment_bytes = 1024};
  EXPECT_FALSE(divide(sum_of(10), terms).cut);
  EXPECT_FALSE(divide(sum_of(10), terms).by_trees) << "the trees' share is less than half of a segment";
  EXPECT_TRUE(divide(sum_of(4096), terms).cut);
}

TEST(Division, OtherPathsAndPartedVectorsAreNotDivided) {
  for (const Path path : {Path::tree, Path::ranks}) {
    const auto policy = policy_with({UINT64_MAX, path, schedule::Algorithm::ring});
    const Division division = divide(sum_of(4096), {.policy = &policy, .nranks = 4, .segment_bytes = 1024});
    EXPECT_EQ(division.by_trees, path == Path::tree);
    EXPECT_FALSE(division.cut);
  }
  const auto policy = policy_with({UINT64_MAX, Path::split, schedule::Algorithm::ring, kWholeShare / 2});
  const DivisionTerms terms{.policy = &policy, .nranks = 4, .segment_bytes = 1024};
  EXPECT_FALSE(divide(sum_of(4096, Collective::reduce_scatter), terms).cut);
  EXPECT_TRUE(divide(sum_of(4096, Collective::broadcast), terms).cut);
}

}  // namespace
}  // namespace tributary::client
