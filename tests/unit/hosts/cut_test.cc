// The pieces make up the whole call: they have each element once, in order.
#include "client/collectives/hosts/cut.h"

#include <gtest/gtest.h>

#include <set>

namespace tributary::client::hosts {
namespace {

constexpr std::uint32_t kRanks = 5;

bool has_parts(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::all_gather;
}

TEST(Cut, CoversEachElementOnceAndInOrder) {
  for (const auto collective : {Collective::all_reduce, Collective::reduce, Collective::broadcast,
                                Collective::reduce_scatter, Collective::all_gather}) {
    for (const auto dtype : {DType::uint8, DType::float32, DType::float64}) {
      for (const std::uint64_t count : {0ULL, 1ULL, 65'535ULL, 65'536ULL, 70'001ULL, 1'000'003ULL, 40'000'000ULL}) {
        const Signature signature{collective, dtype, ReduceOp::sum, 3, count};
        SCOPED_TRACE(to_string(signature));
        const Cut cut(signature, kRanks);
        std::uint64_t next = 0;
        for (std::uint64_t i = 0; i < cut.pieces(); ++i) {
          const Piece piece = cut.at(i);
          if (piece.announces) {
            EXPECT_EQ(i, 0U);
            continue;
          }
          EXPECT_EQ(piece.segment.offset, next);
          next += piece.segment.count;
          EXPECT_LE(piece.segment.count * size_of(dtype), (4U << 20) + (16U << 10));
          if (!has_parts(collective)) {
            EXPECT_EQ(piece.segment.owner, 3U);
          } else if (count > 0) {
            EXPECT_EQ(piece.segment.owner, piece.segment.offset / count);
            EXPECT_LE(piece.segment.offset + piece.segment.count, (piece.segment.owner + 1) * count);
          }
        }
        EXPECT_EQ(next, count * (has_parts(collective) ? kRanks : 1));
      }
    }
  }
}

TEST(Cut, AnnouncesFactsThatNoSinglePieceShows) {
  const auto announces = [](Collective collective, ReduceOp op, std::uint64_t count) {
    return Cut({collective, DType::float32, op, 0, count}, kRanks).at(0).announces;
  };
  EXPECT_FALSE(announces(Collective::all_reduce, ReduceOp::sum, 1000));
  EXPECT_FALSE(announces(Collective::broadcast, ReduceOp::sum, 1000));
  EXPECT_FALSE(announces(Collective::barrier, ReduceOp::sum, 0));
  EXPECT_TRUE(announces(Collective::all_reduce, ReduceOp::avg, 1000));
  EXPECT_TRUE(announces(Collective::all_reduce, ReduceOp::sum, 1'000'000));
  EXPECT_TRUE(announces(Collective::reduce_scatter, ReduceOp::sum, 10));
}

TEST(Cut, DifferentCallsHaveDifferentTags) {
  std::set<std::uint32_t> tags;
  std::size_t calls = 0;
  for (const auto collective : {Collective::all_reduce, Collective::reduce, Collective::all_gather}) {
    for (const auto op : {ReduceOp::sum, ReduceOp::avg}) {
      for (const std::uint32_t root : {0U, 1U}) {
        for (std::uint64_t count = 1; count < 200; ++count, ++calls)
          tags.insert(tag_of({collective, DType::float16, op, root, count * 1'000'003}));
      }
    }
  }
  EXPECT_EQ(tags.size(), calls);
}

}  // namespace
}  // namespace tributary::client::hosts
