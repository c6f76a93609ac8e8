// An aggregator's link that becomes narrow in the middle of a job: the trees' part of each split becomes slow, and the
// ranks' part does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "client/tuning/adaptation.h"

namespace tributary::tuning {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLongBytes = 16 << 20;
constexpr std::uint32_t kRanksOfJob = 8;

class NarrowLinks : public testing::Test {
 protected:
  /// Ends an operation with these times of its two parts. The ranks agree on each amendment at once.
  std::optional<Amendment> one(double trees_us, double ranks_us) {
    const Step step = adaptation_.policy().at(Collective::all_reduce, kLongBytes);
    const double time_us = std::max(trees_us, ranks_us);
    MeasuredOperation o{.number = number_++, .bytes = kLongBytes, .path = step.path, .time_us = time_us};
    o.latency_us = time_us;
    if (step.path == Path::split) o.trees_us = trees_us;
    if (step.path == Path::split) o.ranks_us = ranks_us;
    auto amendment = adaptation_.add(o, now_ += std::chrono::microseconds(static_cast<std::int64_t>(time_us)));
    if (amendment) adaptation_.took_effect(number_, now_);
    return amendment;
  }
  /// Ends operations until the class rests with a split whose parts take 100 ms; all other choices take longer.
  void settle() {
    const Step planned = adaptation_.policy().at(Collective::all_reduce, kLongBytes);
    ASSERT_EQ(planned.path, Path::split);
    for (int i = 0; i < 50; ++i) {
      const bool as_planned = adaptation_.policy().at(Collective::all_reduce, kLongBytes) == planned;
      one(as_planned ? 100'000 : 160'000, as_planned ? 100'000 : 160'000);
    }
    ASSERT_EQ(adaptation_.policy().at(Collective::all_reduce, kLongBytes), planned);
  }
  [[nodiscard]] std::uint32_t share() const {
    return adaptation_.policy().at(Collective::all_reduce, kLongBytes).tree_share;
  }

  const TreeShape shape_{.rates = {.links = 1'000'000'000, .trees = 500'000'000, .ranks = 1'000'000'000}, .levels = 1};
  Adaptation::TimePoint now_{1h};
  std::uint64_t number_ = 0;
  Adaptation adaptation_{with_trees(default_figures({.ranks = kRanksOfJob}, 2), shape_), kRanksOfJob,
                         default_policy({.ranks = kRanksOfJob}, 2, shape_)};
};

TEST_F(NarrowLinks, TwoOperationsMoveTheShareIfTheirTreesAreSlow) {
  settle();
  const std::uint32_t before = share();
  EXPECT_FALSE(one(170'000, 100'000));
  const auto moved = one(170'000, 100'000);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->step.path, Path::split);
  EXPECT_LT(moved->step.tree_share, before);
}

TEST_F(NarrowLinks, TwoOperationsMoveNothingIfTheirRanksAreSlow) {
  settle();
  const std::uint32_t before = share();
  EXPECT_FALSE(one(100'000, 170'000));
  EXPECT_FALSE(one(100'000, 170'000)) << "a stall of one connection may be the cause";
  for (int i = 0; i < 20; ++i) one(100'000, 100'000);
  EXPECT_EQ(share(), before);
}

TEST_F(NarrowLinks, AMovedShareThatWinsIsMovedFurtherByTheSameOperations) {
  std::optional<Amendment> moved;
  for (int i = 0; i < 5 && !moved; ++i) moved = one(400'000, 100'000);
  ASSERT_TRUE(moved);
  const std::uint32_t first = moved->step.tree_share;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(one(350'000, 100'000)) << i;
  const auto further = one(350'000, 100'000);
  ASSERT_TRUE(further) << "one is passed over, and the next three show how far the share is from the best one";
  EXPECT_EQ(further->step.path, Path::split);
  EXPECT_LT(further->step.tree_share, first);
}

}  // namespace
}  // namespace tributary::tuning
