#pragma once
// Estimates the time of each way to run a collective.
//
// Let N be the number of ranks, p the largest power of two <= N, n the bytes of the whole vector (the larger of the two
// buffers), a = message_us, h = hop_us, g = aggregator_us, R the rate of a rank's link, r the rate of a core, R' the
// lower of these two rates, c the cores of a host, k its ranks. An operation between the ranks takes
//
//     max(rounds x a + bytes / R', work / c)
//
// `rounds` and `bytes` are the numbers of the busiest rank. `work` is the work of all ranks of one host, in one core's
// time: a for each message, 1/r for each of its bytes, and a quarter of 1/r for each byte that is reduced (kReducing).
// The reduction overlaps with a link's transfer, but not with the bytes that a core itself moves. The first term
// decides if each rank has a core of its own, the second term if there are more ranks than cores. Measured times with k
// = N, c = 2 and 4 bytes, for N = 2, 4, 8: recursive doubling took 12, 43 to 64 and 130 to 207 us (formula: 12, 50,
// 150); a tree took 34 to 48, 76 to 87 and 127 to 168 us (formula: 36, 72, 144).
//
//     all_reduce       recursive doubling   rounds log p (+2)      bytes n log p (+2n)       messages p log p + 2(N-p)
//                      halving-doubling     2 log p (+2)           2n(p-1)/p (+2n)           2p log p + 2(N-p)
//                      ring                 2(N-1)                 2n(N-1)/N                 2N(N-1)
//       The terms in brackets are added if N is no power of two. Halving-doubling's partners change from round to
//       round, which costs 5 % of the transfer (kSpread). So the ring is quicker once its latency is much shorter than
//       its transfer.
//     broadcast        binomial             log N                  n log N                   N-1
//                      scatter, ring        log N + N-1            2n(N-1)/N                 (N-1)(N+1)
//     reduce           binomial             log N                  n log N                   N-1
//                      ring, gather         N                      2n(N-1)/N                 (N-1)(N+1)
//     reduce_scatter   direct               N/2                    n(N-1)/N, all at once     N(N-1)
//                      ring                 N-1                    n(N-1)/N                  N(N-1)
//     all_gather       bruck                log N                  n(N-1)/N, all at once     N log N
//                      ring                 N-1                    n(N-1)/N                  N(N-1)
//       "All at once" costs 25 % more (kIncast): many messages meet at a receiver's port, and `direct` needs memory
//       for all contributions.
//     gather, scatter  binomial             log N                  n(N-1)/N, stored on the way: twice     N-1
//                      linear               N/2                    n(N-1)/N                  N-1
//       N/2: one rank has N-1 messages, one after the other, and each message takes half of its time at that rank.
//     barrier          dissemination        log N                  0                         N log N
//     all_to_all       pairwise             N-1                    n(N-1)/N                  N(N-1)
//
// R is the rate of a rank's link. Where the topology gives rates, R is what the algorithm gets in the fabric: a ring
// crosses a rack's uplink with few edges if neighbours share the rack, but in some steps of recursive doubling,
// halving-doubling, bruck, direct and pairwise all ranks of the rack cross it at once. The planner counts these steps
// (tree-manager/planner/between_ranks.h).
//
// A tree has the least number of levels L with at most 16 children per aggregator, so an aggregator has
// f = ceil(N^(1/L)) children:
//
//     latency   2 L h, but at least 2 f g: an aggregator takes its children's messages one after the other
//     transfer  n plus a segment, at R': a rank's link carries the vector up and, one segment later, the results down;
//               at least the time of an aggregator, at r, to receive, reduce and send the bytes of all its children, of
//               the lane with the most bytes: each lane has a core of its own
//     work      2 N (h - g) in the ranks, plus the bytes that they send and receive; plus the aggregators' own work if
//               all ranks are on one host, because the model then assumes the aggregators on this host, too
//
// Exact sums (Figures::exact) have one way between the ranks: every rank sends each other rank its part, and the parts
// go around a ring or to the root; a short all_reduce has one round, of whole vectors (client/schedule/exact.cc). To
// reduce a byte costs 0.4 of 1/r (kReducingExactly), and trees of several levels carry 5 bytes for 4 (kFormBytes).
//
// If the operations' memory is in GPUs, and the network does not reach it (Figures::staging_gbytes), each rank copies
// its input down to the host's memory and its result up to the GPU. In a tree these copies overlap with the network's
// transfer, but for the first chunk of the input and the last chunk of the result (kStagedChunk). Between the ranks an
// operation begins when its whole input is down, and its result goes up when it has ended.
//
// The sources are the same as in schedule.h.
#include <optional>
#include <span>
#include <vector>

#include "client/schedule/schedule.h"
#include "client/tuning/figures.h"
#include "tributary/protocol/collective.h"

namespace tributary::tuning {

using schedule::Algorithm;

/// The path of an operation. Tables use these names: append only.
enum class Path : std::uint8_t {
  tree,
  ranks,
  split,  // trees and ranks work at the same time, each on a share of the bytes
};
inline constexpr std::uint8_t kPathCount = 3;

/// Returns whether each range of the vector can be a call by itself, so that the trees carry one range and the ranks
/// another.
[[nodiscard]] bool can_split(Collective collective) noexcept;
/// The unit of shares of an operation's bytes: shares are whole numbers, so that all ranks cut at the same place.
inline constexpr std::uint32_t kWholeShare = 1U << 16;
[[nodiscard]] const char* name(Path path) noexcept;

/// The facts of an operation on which the choice depends.
struct Call {
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;  // bytes of the whole vector: amount_in_all()
};

/// An estimate, in microseconds.
struct Estimate {
  Path path = Path::ranks;
  Algorithm algorithm = Algorithm::ring;  // algorithm between the ranks; unused for Path::tree
  std::uint32_t tree_share = 0;           // the trees' share, out of kWholeShare; only for Path::split
  double latency_us = 0;
  double transfer_us = 0;
  double processors_us = 0;
  [[nodiscard]] double time_us() const noexcept {
    const double alone = latency_us + transfer_us;
    return alone > processors_us ? alone : processors_us;
  }
};

[[nodiscard]] Estimate estimate_tree(const Figures& figures, const Call& call) noexcept;
/// Estimates a split between trees and `algorithm`, with the share that lets both parts end together. Returns nullopt
/// if one path alone is quicker, the trees' rate is not known, or the collective cannot be split. For short operations
/// the trees get a smaller share, because some time passes before the first segment's sum is back.
[[nodiscard]] std::optional<Estimate> estimate_split(const Figures& figures, const Call& call, Algorithm algorithm);
/// Returns the algorithms between the ranks with these figures: an exact sum has only Algorithm::direct.
[[nodiscard]] std::span<const Algorithm> algorithms_of(const Figures& figures, Collective collective) noexcept;
/// Returns whether partial sums travel as forms in trees of so many levels.
[[nodiscard]] constexpr bool forms_travel(const Figures& figures, double levels) noexcept {
  return figures.exact && (figures.leaders || levels > 1);
}
/// Estimates `algorithm` between the ranks, one of algorithms_of().
[[nodiscard]] Estimate estimate_ranks(const Figures& figures, const Call& call, Algorithm algorithm) noexcept;

/// Returns the estimates of all ways, the quickest first. It has a split only if the split saves a part of the time.
/// Equally quick ways keep their order: first the tree, then the order of schedule::algorithms().
[[nodiscard]] std::vector<Estimate> estimates(const Figures& figures, const Call& call);

}  // namespace tributary::tuning
