#pragma once
// Estimates how long each way to run a collective takes.
//
// Let N be the number of ranks, p the largest power of two <= N, n the bytes of the whole vector (the larger of the two
// buffers), a = message_us, h = hop_us, g = aggregator_us, R the rate of a rank's link, r that of a core, R' the lower
// of the two, c the cores of a host, k its ranks. An operation between the ranks takes
//
//     max(rounds x a + bytes / R', work / c)
//
// `rounds` and `bytes` are those of the busiest rank. `work` is what all ranks of one host do, in one core's time: a
// for each message, 1/r for each byte of it, and a quarter of 1/r for each byte that is reduced (kReducing). Reducing
// overlaps with a link's transfer, but not with the bytes that a core itself moves. The first term decides if each rank
// has a core of its own, the second if ranks outnumber cores. Measured with k = N, c = 2 and 4 bytes, for N = 2, 4, 8:
// by doubling 12, 43 to 64 and 130 to 207 us, where the formula gives 12, 50 and 150; in a tree 34 to 48, 76 to 87 and
// 127 to 168 us, where it gives 36, 72 and 144.
//
//     all_reduce       recursive doubling   rounds log p (+2)      bytes n log p (+2n)       messages p log p + 2(N-p)
//                      halving-doubling     2 log p (+2)           2n(p-1)/p (+2n)           2p log p + 2(N-p)
//                      ring                 2(N-1)                 2n(N-1)/N                 2N(N-1)
//       In brackets: added if N is no power of two. Halving-doubling's partners change from round to round, which costs
//       5 % of the transfer (kSpread): the ring therefore wins once its latency is small beside the transfer.
//     broadcast        binomial             log N                  n log N                   N-1
//                      scatter, ring        log N + N-1            2n(N-1)/N                 (N-1)(N+1)
//     reduce           binomial             log N                  n log N                   N-1
//                      ring, gather         N                      2n(N-1)/N                 (N-1)(N+1)
//     reduce_scatter   direct               N/2                    n(N-1)/N, all at once     N(N-1)
//                      ring                 N-1                    n(N-1)/N                  N(N-1)
//     all_gather       bruck                log N                  n(N-1)/N, all at once     N log N
//                      ring                 N-1                    n(N-1)/N                  N(N-1)
//       All at once costs 25 % (kIncast): receivers' ports and, for direct, memory for all contributions.
//     gather, scatter  binomial             log N                  n(N-1)/N, stored on the way: twice     N-1
//                      linear               N/2                    n(N-1)/N                  N-1
//       N/2: one rank has N-1 messages, one after the other, and half of each message's time is spent at that rank.
//     barrier          dissemination        log N                  0                         N log N
//     all_to_all       pairwise             N-1                    n(N-1)/N                  N(N-1)
//
// A tree has the fewest levels L that allow at most 16 children each, so an aggregator has f = ceil(N^(1/L)) children:
//
//     latency   2 L h, and no less than 2 f g: an aggregator takes its children's messages one after the other
//     transfer  n + a segment, at R': a rank's link carries the vector up while it carries the results down, a segment
//               behind. No less than an aggregator needs, at r, to receive, reduce and send for all its children.
//     work      2 N (h - g) in the ranks, and the bytes that they send and receive; and the aggregators' own work if
//               all ranks are on one host, because the model then assumes the aggregators there, too.
//
// Sources: as in schedule.h.
#include <optional>
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
  split,  // trees and ranks at the same time, each with a share of the bytes
};
inline constexpr std::uint8_t kPathCount = 3;

/// Returns whether each range of the vector can be a call by itself, so that trees and ranks carry a range each.
[[nodiscard]] bool can_split(Collective collective) noexcept;
/// A share of an operation's bytes, in whole numbers so that all ranks cut alike.
inline constexpr std::uint32_t kWholeShare = 1U << 16;
[[nodiscard]] const char* name(Path path) noexcept;

/// An operation, as far as the choice depends on it.
struct Call {
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;  // bytes of the whole vector: amount_in_all()
};

/// An estimate, in microseconds.
struct Estimate {
  Path path = Path::ranks;
  Algorithm algorithm = Algorithm::ring;  // between the ranks; meaningless for Path::tree
  std::uint32_t tree_share = 0;           // a part of kWholeShare; for Path::split alone
  double latency_us = 0;
  double transfer_us = 0;
  double processors_us = 0;
  [[nodiscard]] double time_us() const noexcept {
    const double alone = latency_us + transfer_us;
    return alone > processors_us ? alone : processors_us;
  }
};

[[nodiscard]] Estimate estimate_tree(const Figures& figures, const Call& call) noexcept;
/// Estimates trees and `algorithm` at once, with the share that lets both end together; nullopt: a share of nothing or
/// of all would be quickest, the trees' rate is not known, or the collective cannot be split. The trees get less of
/// short operations, in few steps, because the first segment is under way for a while before its sum is back.
[[nodiscard]] std::optional<Estimate> estimate_split(const Figures& figures, const Call& call, Algorithm algorithm);
/// The collective must have `algorithm`.
[[nodiscard]] Estimate estimate_ranks(const Figures& figures, const Call& call, Algorithm algorithm) noexcept;

/// Returns all ways, the quickest first; a split only where it saves a part of the time. Equally quick ways keep their
/// order: the tree, then the order of schedule::algorithms().
[[nodiscard]] std::vector<Estimate> estimates(const Figures& figures, const Call& call);

}  // namespace tributary::tuning
