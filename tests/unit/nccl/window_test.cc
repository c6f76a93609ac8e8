#include "client/plugins/nccl/collective/window.h"

#include <gmock/gmock.h>

namespace tributary::nccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Window, OverAllHasEveryRanksPartWhole) {
  EXPECT_THAT(shares_of_window(100, 3, 0, 300), ElementsAre(Share{0, 0, 100}, Share{1, 100, 100}, Share{2, 200, 100}));
}

TEST(Window, InsideOnePartHasOnlyThatRank) {
  EXPECT_THAT(shares_of_window(100, 3, 110, 30), ElementsAre(Share{1, 0, 30}));
}

TEST(Window, OverABorderHasTheEndOfOnePartAndTheBeginningOfTheNext) {
  EXPECT_THAT(shares_of_window(100, 3, 90, 20), ElementsAre(Share{0, 0, 10}, Share{1, 10, 10}));
}

TEST(Window, EndsWithTheLastRank) {
  EXPECT_THAT(shares_of_window(100, 3, 250, 200), ElementsAre(Share{2, 0, 50}));
  EXPECT_THAT(shares_of_window(100, 3, 300, 10), IsEmpty());
}

TEST(Window, AnEmptyWindowHasNoPart) {
  EXPECT_THAT(shares_of_window(100, 3, 50, 0), IsEmpty());
  EXPECT_THAT(shares_of_window(0, 3, 0, 10), IsEmpty());
}

}  // namespace
}  // namespace tributary::nccl
