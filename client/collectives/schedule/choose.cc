// Names, and the first guess which algorithm is fastest.
//
// A message of m bytes takes alpha + m beta. The defaults assume alpha = 20 us (a frame through TCP and a poll loop)
// and beta = 1 / (2.5 GB/s), so that alpha / beta, the bytes that cost as much as one message, is about 50 KB. N ranks,
// n bytes, p the largest power of two <= N:
//
//   all_reduce      recursive doubling  log p (alpha + n beta)              halving-doubling  2 log p alpha + 2 n beta
//   (p-1)/p
//                   ring                2 (N-1) alpha + 2 n beta (N-1)/N    both of the first + 2 (alpha + n beta) when
//                   N is no power of two
//     Doubling gives way at n = (alpha/beta) log p / (log p - 2 (p-1)/p): 200 KB for 4 ranks, 95 KB for 16, 50 KB for
//     many, and less where the reduction itself counts. Halving-doubling moves what the ring moves in fewer rounds; the
//     ring, whose ranks talk to two neighbours alone, wins once its latency is lost in the transfer: n >> N alpha/beta.
//     When N is no power of two, folding costs more bytes than the rounds are worth from n = (N - log p - 2) alpha/beta
//     on: never worth it below 6 ranks, 100 KB at 6, 350 KB at 12.
//   broadcast       binomial  log N (alpha + n beta)     scatter, all-gather  (log N + N-1) alpha + 2 n beta (N-1)/N
//     They cross at n = (alpha/beta) (N-1) / (log N - 2): 350 KB for 8 ranks, 520 KB for 32. For 2 ranks the tree is
//     one message.
//   reduce          binomial  log N (alpha + n beta)     reduce-scatter, gather  N alpha + 2 n beta (N-1)/N
//     They cross at 200 KB for 8 ranks, 290 KB for 16. For 2 ranks the tree is one message.
//   reduce_scatter, all_gather   Direct and Bruck move what the ring moves in fewer rounds, but from everywhere to
//   everywhere at once, and direct
//     needs scratch for all contributions.
//   gather, scatter   The root's link carries all parts in any case. A tree spares the root messages, and costs copies
//   on the way: tiny parts only.
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
