#include "client/cli/perf/pattern.h"

#include <gtest/gtest.h>

#include <cstring>

#include "client/cli/perf/checked_call.h"
#include "tributary/kernels/reduce.h"
#include "tributary/protocol/numerics.h"

namespace tributary::cli {
namespace {

std::vector<ReduceOp> operators_of(DType dtype) {
  std::vector<ReduceOp> operators;
  for (std::uint8_t op = 0; op < kReduceOpCount; ++op) {
    if (is_defined(ReduceOp{op}, dtype)) operators.push_back(ReduceOp{op});
  }
  return operators;
}

using Bytes = std::vector<std::byte>;

/// Reduces in the order of `ranks`, pairwise, rounding each partial result to the dtype: the worst case of a tree or a
/// ring.
Bytes reduce_pairwise(DType dtype, ReduceOp op, const Pattern& pattern, const std::vector<std::uint32_t>& ranks) {
  Bytes sum = pattern.contribution(ranks[0]);
  const ReduceOp step = op == ReduceOp::avg ? ReduceOp::sum : op;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    const Bytes next = pattern.contribution(ranks[i]);
    const void* const inputs[] = {sum.data(), next.data()};
    kernels::reduce(dtype, step, inputs, sum.data(), kPatternPeriod);
  }
  if (op == ReduceOp::avg) {
    const void* const inputs[] = {sum.data()};
    kernels::reduce(dtype, op, inputs, sum.data(), kPatternPeriod, static_cast<std::uint32_t>(ranks.size()));
  }
  return sum;
}

TEST(Pattern, HasTheSameResultInEveryOrderOfReduction) {
  for (std::uint8_t d = 0; d < kDTypeCount; ++d) {
    for (const ReduceOp op : operators_of(DType{d})) {
      for (const std::uint32_t ranks : {1U, 2U, 3U, 7U, 8U, 64U, 130U}) {
        const auto dtype = static_cast<DType>(d);
        const Pattern pattern(dtype, op, ranks);
        std::vector<std::uint32_t> order(ranks);
        for (std::uint32_t r = 0; r < ranks; ++r) order[r] = r;
        const std::string what =
            std::string(to_string(dtype)) + " " + std::string(to_string(op)) + " of " + std::to_string(ranks);
        EXPECT_EQ(reduce_pairwise(dtype, op, pattern, order), pattern.reduced()) << what;
        std::reverse(order.begin(), order.end());
        EXPECT_EQ(reduce_pairwise(dtype, op, pattern, order), pattern.reduced()) << what << ", backwards";
      }
    }
  }
}

TEST(Pattern, DiffersFromRankToRankAndFromPlaceToPlace) {
  for (const DType dtype : {DType::float32, DType::int32}) {
    for (const ReduceOp op : operators_of(dtype)) {
      if (is_logical(op)) continue;  // most values of such a pattern are equal
      const Pattern pattern(dtype, op, 4);
      EXPECT_NE(pattern.contribution(0), pattern.contribution(1)) << to_string(op);
      Bytes shifted(kPatternPeriod * 4);
      tile(pattern.contribution(0), 4, 16384 % kPatternPeriod, shifted);
      const auto wrong = count_wrong(pattern.contribution(0), 4, 0, shifted);
      EXPECT_GT(wrong, kPatternPeriod / 2) << to_string(op);
    }
  }
}

TEST(Tile, BeginsAtItsOffsetAndRepeats) {
  const Pattern pattern(DType::int32, ReduceOp::sum, 2);
  const Bytes period = pattern.contribution(1);
  Bytes out(3 * period.size());
  tile(period, 4, 5, out);
  EXPECT_EQ(std::memcmp(out.data(), period.data() + 20, period.size() - 20), 0);
  EXPECT_EQ(std::memcmp(out.data() + period.size() - 20, period.data(), period.size()), 0);
  EXPECT_EQ(count_wrong(period, 4, 5, out), 0U);
  EXPECT_EQ(count_wrong(period, 4, 5 + kPatternPeriod, out), 0U);
}

TEST(CountWrong, CountsElementsNotBytes) {
  const Pattern pattern(DType::float64, ReduceOp::sum, 2);
  const Bytes period = pattern.reduced();
  Bytes out(2 * period.size());
  tile(period, 8, 0, out);
  out[0] ^= std::byte{1};
  out[1] ^= std::byte{1};
  out[16] ^= std::byte{0x80};
  out[period.size() + 8] ^= std::byte{1};
  EXPECT_EQ(count_wrong(period, 8, 0, out), 3U);
}

/// All ranks of a collective in one place: copies inputs, and writes the correct results.
class Copier {
 public:
  Copier(PerfCollective collective, std::uint32_t ranks, std::size_t elements) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      calls_.emplace_back(CallShape{.collective = collective, .root = 1, .rank = rank, .ranks = ranks});
      counts_ = counts_of(collective, elements, ranks);
      send_.emplace_back(counts_.send * 4 + 4);
      recv_.emplace_back(counts_.recv * 4 + 4);
      calls_.back().fill_input({send_[rank].data(), recv_[rank].data()}, counts_, kBegin);
    }
  }
  void copy(std::size_t from, std::size_t from_part, std::size_t to, std::size_t to_part) {
    std::memcpy(recv_[to].data() + to_part * counts_.count * 4, send_[from].data() + from_part * counts_.count * 4,
                counts_.count * 4);
  }
  [[nodiscard]] std::uint64_t wrong(std::size_t rank) const {
    return calls_[rank].wrong_elements(recv_[rank].data(), counts_, kBegin);
  }
  [[nodiscard]] const PerfCounts& counts() const noexcept { return counts_; }

 private:
  static constexpr std::size_t kBegin = 77;
  std::vector<CheckedCall> calls_;
  PerfCounts counts_;
  std::vector<Bytes> send_, recv_;
};

TEST(CheckedCall, KnowsTheResultOfEveryMovement) {
  const std::uint32_t n = 3;
  using P = PerfCollective;
  for (const P collective : {P::broadcast, P::all_gather, P::all_to_all, P::gather, P::scatter, P::sendrecv}) {
    Copier all(collective, n, 3000);
    for (std::size_t rank = 0; rank < n; ++rank) {
      const bool receives = collective != P::gather || rank == 1;
      EXPECT_EQ(all.wrong(rank) != 0, receives) << to_string(collective) << ": before, on rank " << rank;
      if (collective == P::broadcast) all.copy(1, 0, rank, 0);
      if (collective == P::scatter) all.copy(1, rank, rank, 0);
      if (collective == P::sendrecv) all.copy((rank + 2) % n, 0, rank, 0);
      for (std::size_t from = 0; from < n; ++from) {
        if (collective == P::all_gather || (collective == P::gather && rank == 1)) all.copy(from, 0, rank, from);
        if (collective == P::all_to_all) all.copy(from, rank, rank, from);
      }
      EXPECT_EQ(all.wrong(rank), 0U) << to_string(collective) << ": after, on rank " << rank;
    }
  }
}

TEST(CheckedCall, FindsARanksPartInTheWrongPlace) {
  Copier all(PerfCollective::all_gather, 3, 3000);
  all.copy(0, 0, 2, 0);
  all.copy(2, 0, 2, 1);
  all.copy(1, 0, 2, 2);
  EXPECT_GT(all.wrong(2), all.counts().count);
}

TEST(Counts, DivideTheSizeAmongTheRanksAsNcclTestsDo) {
  const auto expect = [](PerfCollective collective, std::size_t count, std::size_t send, std::size_t recv) {
    const PerfCounts counts = counts_of(collective, 1003, 4);
    EXPECT_EQ(counts.count, count) << to_string(collective);
    EXPECT_EQ(counts.send, send) << to_string(collective);
    EXPECT_EQ(counts.recv, recv) << to_string(collective);
  };
  expect(PerfCollective::all_reduce, 1003, 1003, 1003);
  expect(PerfCollective::broadcast, 1003, 1003, 1003);
  expect(PerfCollective::reduce_scatter, 250, 1000, 250);
  expect(PerfCollective::all_gather, 250, 250, 1000);
  expect(PerfCollective::all_to_all, 250, 1000, 1000);
  expect(PerfCollective::gather, 250, 250, 1000);
  expect(PerfCollective::scatter, 250, 1000, 250);
  expect(PerfCollective::barrier, 0, 0, 0);
  EXPECT_DOUBLE_EQ(bus_factor(PerfCollective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(PerfCollective::all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(PerfCollective::broadcast, 4), 1);
}

}  // namespace
}  // namespace tributary::cli
