// The way on which an operation would have been quicker, by the cost model's ratios.
#include "client/tuning/quicker_way.h"

#include <gtest/gtest.h>

namespace tributary::tuning {
namespace {

constexpr Call kLong{.collective = Collective::all_reduce, .ranks = 8, .bytes = 16 << 20};

TEST(QuickerWay, ALongSumBetweenRanksWouldBeQuickerOverWideTrees) {
  const auto quicker = quicker_way(Figures{}, {.call = kLong});
  ASSERT_TRUE(quicker);
  EXPECT_EQ(quicker->way, Quicker::wide_trees);
  // A ring of 8 ranks sends 14/8 of the vector, a tree sends it once.
  EXPECT_NEAR(quicker->ratio, 8.0 / 14, 0.05);
}

TEST(QuickerWay, NothingIsSaidOfShortOperations) {
  EXPECT_FALSE(quicker_way(Figures{}, {.call = {.collective = Collective::all_reduce, .ranks = 8, .bytes = 64}}));
}

TEST(QuickerWay, NothingIsSaidOfRanksWithoutLinks) {
  Figures figures;
  figures.link_gbits = 0;
  EXPECT_FALSE(quicker_way(figures, {.call = kLong}));
}

TEST(QuickerWay, NothingIsSaidOfCollectivesThatNoTreeCarries) {
  EXPECT_FALSE(quicker_way(Figures{}, {.call = {.collective = Collective::all_to_all, .ranks = 8, .bytes = 16 << 20}}));
}

TEST(QuickerWay, TreesAsWideAsTheLinksAreTheQuickest) {
  Figures figures;
  figures.trees_gbits = figures.link_gbits;
  EXPECT_FALSE(quicker_way(figures, {.call = kLong, .in_network = true, .trees_in_use = true}));
}

TEST(QuickerWay, NarrowTreesWouldBeQuickerIfTheyWereWide) {
  Figures figures;
  figures.trees_gbits = figures.link_gbits / 4;
  const auto quicker = quicker_way(figures, {.call = kLong, .in_network = true, .trees_in_use = true});
  ASSERT_TRUE(quicker);
  EXPECT_EQ(quicker->way, Quicker::wide_trees);
}

TEST(QuickerWay, AFixedChoiceIsComparedWithThePresentOthers) {
  Figures figures;
  figures.trees_gbits = figures.link_gbits;
  const auto trees = quicker_way(figures, {.call = kLong, .trees_in_use = true, .other_path_untried = true});
  ASSERT_TRUE(trees);
  EXPECT_EQ(trees->way, Quicker::present_trees);
  EXPECT_FALSE(quicker_way(figures, {.call = kLong, .trees_in_use = true})) << "the tuning tries the trees by itself";
}

}  // namespace
}  // namespace tributary::tuning
