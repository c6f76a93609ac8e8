// The dealing of segments to lanes: every segment goes to one lane, each lane gets its share, and lanes of equal
// weights take turns.
#include "client/operation/dealing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/frame.h"

namespace tributary::client {
namespace {

using Weights = std::vector<std::uint32_t>;

Weights some_weights(std::mt19937& random) {
  constexpr std::uint32_t kBounds[] = {1, 3, 10, kLaneWeightMax};
  Weights weights(1 + random() % kLanesMax);
  const std::uint32_t most = kBounds[random() % std::size(kBounds)];
  for (std::uint32_t& weight : weights) weight = 1 + static_cast<std::uint32_t>(random() % most);
  return weights;
}

TEST(Dealing, EqualWeightsDealInTurnFromTheOperationsNumberOn) {
  for (std::uint32_t lanes = 1; lanes <= kLanesMax; ++lanes) {
    const Dealing dealing(Weights(lanes, 5));
    EXPECT_EQ(dealing.cycle(), lanes);
    for (std::uint64_t operation = 0; operation < 40; ++operation) {
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        const std::uint64_t first = (lane + lanes - operation % lanes) % lanes;
        const LaneTurns turns = dealing.turns_of(lane);
        ASSERT_EQ(turns.first(operation), first) << "operation " << operation << ", lane " << lane << " of " << lanes;
        ASSERT_EQ(turns.after(operation, first), first + lanes);
      }
    }
  }
}

// Each lane lists only its own segments. All lists together must contain each segment once, in the lane that lane_of()
// names.
TEST(Dealing, GivesEverySegmentOfEveryOperationToOneLane) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const Weights weights = some_weights(random);
    const Dealing dealing(weights);
    const std::uint64_t operation = random() % 3 == 0 ? random() % 5 : (std::uint64_t{random()} << 20) + random();
    const std::uint64_t segments = 1 + random() % 700;
    std::vector<int> got(segments, 0);
    for (std::uint32_t lane = 0; lane < weights.size(); ++lane) {
      const LaneTurns turns = dealing.turns_of(lane);
      for (std::uint64_t s = turns.first(operation); s < segments; s = turns.after(operation, s)) {
        ++got[s];
        ASSERT_EQ(dealing.lane_of(operation, s), lane);
      }
    }
    for (std::uint64_t s = 0; s < segments; ++s) ASSERT_EQ(got[s], 1) << "segment " << s << " of round " << round;
  }
}

TEST(Dealing, FindsTheNextSegmentOfALaneAfterAnyOther) {
  const Dealing dealing(Weights{1, 4, 2});
  for (std::uint32_t lane = 0; lane < 3; ++lane) {
    const LaneTurns turns = dealing.turns_of(lane);
    for (std::uint64_t after = 0; after < 30; ++after) {
      const std::uint64_t next = turns.after(11, after);
      ASSERT_GT(next, after);
      ASSERT_EQ(dealing.lane_of(11, next), lane);
      for (std::uint64_t s = after + 1; s < next; ++s) ASSERT_NE(dealing.lane_of(11, s), lane);
    }
  }
}

TEST(Dealing, EachLanesShareIsRightToLessThanOneSegment) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const Weights weights = some_weights(random);
    const Dealing dealing(weights);
    double sum = 0;
    for (const std::uint32_t weight : weights) sum += weight;
    std::vector<int> dealt(weights.size(), 0);
    for (std::uint64_t s = 0; s < 2 * dealing.cycle(); ++s) {
      ++dealt[dealing.lane_of(0, s)];
      for (std::size_t lane = 0; lane < weights.size(); ++lane)
        ASSERT_LT(std::abs(dealt[lane] - static_cast<double>(s + 1) * weights[lane] / sum), 1)
            << "lane " << lane << " after segment " << s << " of round " << round;
    }
  }
}

TEST(Dealing, MixesALightLaneAmongTheSegmentsOfAHeavyOne) {
  const Dealing dealing(Weights{16, 64});  // one aggregator has a link of 250 Mbit/s, the other one of 1 Gbit/s
  EXPECT_EQ(dealing.cycle(), 5U);
  constexpr std::uint32_t kCycle[] = {1, 1, 1, 0, 1};  // the example in docs/protocol.md
  for (std::uint64_t place = 0; place < 5; ++place) EXPECT_EQ(dealing.lane_of(0, place), kCycle[place]);
  for (std::uint64_t s = 0; s < 50; s += 5) {
    int light = 0;
    for (std::uint64_t i = s; i < s + 5; ++i) light += dealing.lane_of(0, i) == 0 ? 1 : 0;
    EXPECT_EQ(light, 1);
  }
}

// A stream of operations of one segment each must use the lanes by their weights, too.
TEST(Dealing, OperationsOfOneSegmentTakeTheLanesByTheirWeights) {
  const Weights weights{1, 2, 5};
  const Dealing dealing(weights);
  std::vector<std::uint32_t> taken(weights.size(), 0);
  for (std::uint64_t operation = 1000; operation < 1080; ++operation) ++taken[dealing.lane_of(operation, 0)];
  EXPECT_EQ(taken, (std::vector<std::uint32_t>{10, 20, 50}));
}

TEST(DealingDeathTest, AssertsThatEveryLaneHasAWeightWithinBounds) {
  EXPECT_DEATH(Dealing(Weights{1, 0}), "weights from 0 to 1");
  EXPECT_DEATH(Dealing(Weights{1, kLaneWeightMax + 1}), "weights from 1 to 65");
}

}  // namespace
}  // namespace tributary::client
