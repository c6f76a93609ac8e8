// Names, and the first guess which algorithm is fastest.
//
// A message of m bytes takes a + m b. The defaults assume a = 20 us (a frame through TCP and a poll loop) and b =
// 1 / (2.5 GB/s), so that a / b, the bytes that take as long as one more message, is about 50 KB. With N ranks, n
// bytes, p the largest power of two <= N, log to base 2, and the time of reducing left out:
//
// all_reduce
//     recursive doubling   log p (a + n b)                  + 2 (a + n b) where N is no power of two
//     halving-doubling     2 log p a + 2 n b (p-1)/p        likewise
//     ring                 2 (N-1) a + 2 n b (N-1)/N
//   Doubling gives way at n = (a/b) log p / (log p - 2 (p-1)/p): 200 KB for 4 ranks, 95 KB for 16, 50 KB for many, and
//   less where reducing counts. Halving-doubling moves what the ring moves in fewer rounds; the ring, where a rank
//   talks to its two neighbours alone, wins once its latency is lost in the transfer: n >> N a/b. Where N is no power
//   of two, folding costs more than the rounds it saves from n = (N - log p - 2) a/b on: at once below 6 ranks, at 100
//   KB for 6, at 350 KB for 12.
// broadcast
//     binomial             log N (a + n b)
//     scatter, all-gather  (log N + N-1) a + 2 n b (N-1)/N
//   They cross at n = (a/b) (N-1) / (log N - 2): 350 KB for 8 ranks, 520 KB for 32. For 2 ranks the tree is one
//   message.
// reduce
//     binomial             log N (a + n b)
//     ring, gather         N a + 2 n b (N-1)/N
//   They cross at 200 KB for 8 ranks, 290 KB for 16. For 2 ranks the tree is one message.
// reduce_scatter, all_gather
//   Direct and Bruck move what the ring moves in fewer rounds, but between all ranks at once, and direct needs scratch
//   for all contributions.
// gather, scatter
//   The root's link carries every part in any case. A tree spares the root messages and costs copies on the way, so it
//   is for tiny parts.
#include <algorithm>
#include <bit>

#include "client/collectives/schedule/schedule.h"

namespace tributary::schedule {
namespace {

Algorithm choose_all_reduce(std::uint32_t ranks, std::uint64_t bytes, const Thresholds& thresholds) noexcept {
  constexpr std::uint32_t kUnevenRanksMin = 6;
  if (bytes <= thresholds.recursive_doubling_bytes_max) return Algorithm::recursive_doubling;
  const bool even = std::has_single_bit(ranks);
  if (!even && ranks < kUnevenRanksMin) return Algorithm::ring;
  const std::uint64_t limit =
      even ? thresholds.halving_doubling_bytes_max : thresholds.halving_doubling_uneven_bytes_max;
  return bytes <= limit ? Algorithm::halving_doubling : Algorithm::ring;
}

}  // namespace

const char* name(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::ring:
      return "ring";
    case Algorithm::recursive_doubling:
      return "recursive-doubling";
    case Algorithm::halving_doubling:
      return "halving-doubling";
    case Algorithm::binomial:
      return "binomial";
    case Algorithm::scatter_all_gather:
      return "scatter-all-gather";
    case Algorithm::reduce_scatter_gather:
      return "reduce-scatter-gather";
    case Algorithm::direct:
      return "direct";
    case Algorithm::bruck:
      return "bruck";
    case Algorithm::dissemination:
      return "dissemination";
    case Algorithm::pairwise:
      return "pairwise";
    case Algorithm::linear:
      return "linear";
  }
  return "invalid";
}

std::span<const Algorithm> algorithms(Collective collective) noexcept {
  using enum Algorithm;
  static constexpr Algorithm kAllReduce[] = {ring, recursive_doubling, halving_doubling};
  static constexpr Algorithm kReduce[] = {binomial, reduce_scatter_gather};
  static constexpr Algorithm kBroadcast[] = {binomial, scatter_all_gather};
  static constexpr Algorithm kReduceScatter[] = {ring, direct};
  static constexpr Algorithm kAllGather[] = {ring, bruck};
  static constexpr Algorithm kBarrier[] = {dissemination};
  static constexpr Algorithm kAllToAll[] = {pairwise};
  static constexpr Algorithm kGatherAndScatter[] = {binomial, linear};
  switch (collective) {
    case Collective::all_reduce:
      return kAllReduce;
    case Collective::reduce:
      return kReduce;
    case Collective::broadcast:
      return kBroadcast;
    case Collective::reduce_scatter:
      return kReduceScatter;
    case Collective::all_gather:
      return kAllGather;
    case Collective::barrier:
      return kBarrier;
    case Collective::all_to_all:
      return kAllToAll;
    case Collective::gather:
    case Collective::scatter:
      return kGatherAndScatter;
  }
  return {};
}

Algorithm choose(Collective collective, std::uint32_t ranks, std::uint64_t bytes,
                 const Thresholds& thresholds) noexcept {
  switch (collective) {
    case Collective::all_reduce:
      return choose_all_reduce(ranks, bytes, thresholds);
    case Collective::reduce:
      return ranks <= 2 || bytes <= thresholds.reduce_binomial_bytes_max ? Algorithm::binomial
                                                                         : Algorithm::reduce_scatter_gather;
    case Collective::broadcast:
      return ranks <= 2 || bytes <= thresholds.broadcast_binomial_bytes_max ? Algorithm::binomial
                                                                            : Algorithm::scatter_all_gather;
    case Collective::reduce_scatter:
      return bytes <= thresholds.reduce_scatter_direct_bytes_max ? Algorithm::direct : Algorithm::ring;
    case Collective::all_gather:
      return bytes <= thresholds.all_gather_bruck_bytes_max ? Algorithm::bruck : Algorithm::ring;
    case Collective::barrier:
      return Algorithm::dissemination;
    case Collective::all_to_all:
      return Algorithm::pairwise;
    case Collective::gather:
      return bytes <= thresholds.gather_binomial_bytes_max ? Algorithm::binomial : Algorithm::linear;
    case Collective::scatter:
      return bytes <= thresholds.scatter_binomial_bytes_max ? Algorithm::binomial : Algorithm::linear;
  }
  return algorithms(collective).front();
}

}  // namespace tributary::schedule
