// The table of collectives agrees with the definitions of MPI and NCCL.
#include "tributary/protocol/collective.h"

#include <gtest/gtest.h>

#include <limits>

namespace tributary {
namespace {

constexpr std::uint32_t kRanks = 8;
constexpr std::uint64_t kCount = 100;

struct Known {
  Collective collective;
  std::uint64_t sent_by_root, sent_by_others, received_by_root, received_by_others, in_all;
  bool rooted;
};
constexpr Known kKnown[] = {
    {Collective::all_reduce, 100, 100, 100, 100, 100, false},
    {Collective::reduce, 100, 100, 100, 0, 100, true},
    {Collective::broadcast, 100, 0, 100, 100, 100, true},
    {Collective::reduce_scatter, 800, 800, 100, 100, 800, false},
    {Collective::all_gather, 100, 100, 800, 800, 800, false},
    {Collective::barrier, 0, 0, 0, 0, 0, false},
    {Collective::all_to_all, 800, 800, 800, 800, 800, false},
    {Collective::gather, 100, 100, 800, 0, 800, true},
    {Collective::scatter, 800, 0, 100, 100, 800, true},
};

TEST(CollectiveTable, HasTheKnownShapes) {
  ASSERT_EQ(std::size(kKnown), std::size_t{kCollectiveCount});
  for (const Known& known : kKnown) {
    const Collective c = known.collective;
    EXPECT_EQ(amount_sent(c, kCount, true, kRanks), known.sent_by_root) << to_string(c);
    EXPECT_EQ(amount_sent(c, kCount, false, kRanks), known.sent_by_others) << to_string(c);
    EXPECT_EQ(amount_received(c, kCount, true, kRanks), known.received_by_root) << to_string(c);
    EXPECT_EQ(amount_received(c, kCount, false, kRanks), known.received_by_others) << to_string(c);
    EXPECT_EQ(amount_in_all(c, kCount, kRanks), known.in_all) << to_string(c);
    EXPECT_EQ(has_root(c), known.rooted) << to_string(c);
  }
}

TEST(CollectiveTable, AgreesWithItself) {
  for (const CollectiveRow& row : kCollectives) {
    const auto name = to_string(row.collective);
    EXPECT_EQ(row.in_place == InPlace::never, row.send == row.recv && row.send != Extent::one) << name;
    EXPECT_TRUE(row.in_place != InPlace::recv_in_send || row.send == Extent::per_rank) << name;
    EXPECT_TRUE(row.pattern == Pattern::nothing || row.by_tree) << name;
    EXPECT_EQ(row.reduces, row.pattern == Pattern::all_to_all_ranks || row.pattern == Pattern::all_to_one) << name;
    EXPECT_FALSE(row.senders == Holders::root && row.receivers == Holders::root) << name;
  }
}

TEST(CollectiveTable, AProductThatDoesNotFitIsTheGreatestNumber) {
  EXPECT_EQ(amount_in(Extent::per_rank, 1ULL << 62, 1U << 31), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(amount_in(Extent::per_rank, 5, 0), 0U);
  EXPECT_EQ(amount_in(Extent::none, 5, 8), 0U);
}

}  // namespace
}  // namespace tributary
