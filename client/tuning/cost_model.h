#pragma once
// Estimates how long each way to run a collective takes.
//
// Let N be the number of ranks, n the bytes of the whole vector (the larger of the two buffers), a = message_us, h =
// hop_us, g = aggregator_us, R the rate of a rank's link, r that of a core, c the cores of a host, k its ranks. An
// operation takes
//
//     latency + transfer, but no less than the processors need:   max(rounds x latency + bytes x 1/R', work / c)
//
// where `rounds` and `bytes` are those of the busiest rank, R' = min(R, r), and `work` is all that the ranks of one
// where `rounds` and `bytes` are those of the busiest rank, R' = min(R, r), and `work` is all that the ranks of one
// host do, and the aggregators if they share it: every message costs a, every byte of it 1/r, and a quarter of that if
// it is reduced (kReducing; reducing overlaps with a link's transfer, but not with the bytes that a core itself moves).
// If ranks have cores of their own the first term counts; if they outnumber the cores, the second. Measured with k = N
// and c = 2, 4 bytes: N = 2, 4, 8 take 12, 43 to 64 and 130 to 207 us by doubling, where the formula gives 12, 50 and
// 150; in a tree 34 to 48, 76 to 87 and 127 to 168, where it gives 36, 72 and 144.
//     all_reduce       recursive doubling   rounds log p (+2)      bytes n log p (+2n)       messages p log p + 2(N-p)
//                      halving-doubling     2 log p (+2)           2n(p-1)/p (+2n)           2p log p + 2(N-p)
//                      ring                 2(N-1)                 2n(N-1)/N                 2N(N-1)
//       in brackets: where N is no power of two. Halving-doubling's partners change from round to round, which costs it
//       5 % of the transfer (kSpread): that is what lets the ring win once its latency is lost in the transfer.
//     broadcast        binomial             log N                  n log N                   N-1
//       in brackets: if N is no power of two. Halving-doubling's partners change from round to round, which costs it
//       5 % of the transfer (kSpread): the ring therefore wins once its latency is lost in the transfer.
//                      ring, gather         N                      2n(N-1)/N                 (N-1)(N+1)
//     reduce_scatter   direct               N/2                    n(N-1)/N, all at once     N(N-1)
//                      ring                 N-1                    n(N-1)/N                  N(N-1)
//     all_gather       bruck                log N                  n(N-1)/N, all at once     N log N
//                      ring                 N-1                    n(N-1)/N                  N(N-1)
//       All at once costs 25 % (kIncast): receivers' ports and, for direct, memory for all contributions.
//     gather, scatter  binomial             log N                  n(N-1)/N, stored on the way: twice     N-1
//                      linear               N/2                    n(N-1)/N                  N-1
//       N/2: a rank's messages to all others are its own work, one after the other.
//     barrier          dissemination        log N                  0                         N log N
//     all_to_all       pairwise             N-1                    n(N-1)/N                  N(N-1)
//
// In a tree of the fewest levels L with at most 16 children each, and so f = ceil(N^(1/L)):
//
//     latency   2 L h, and no less than 2 f g: an aggregator takes its children's messages one after the other
//     transfer  n + a segment, at R': a rank's link carries the vector up while it carries the results down, a segment
//               behind. No less than an aggregator needs for what comes, is reduced and goes at its children, at r.
//     work      2 N (h - g) in the ranks, and the bytes that they send and receive; the aggregators' own where all
//               ranks are of one host, since then they share it.
//
// Sources: as in schedule.h.
#include <optional>
#include <vector>

#include "client/schedule/schedule.h"
#include "client/tuning/figures.h"
#include "tributary/protocol/collective.h"

namespace tributary::tuning {

using schedule::Algorithm;

/// Where an operation runs. Tables use these names: append only.
enum class Path : std::uint8_t {
  tree,
  ranks,
  split,  // trees and ranks at the same time, each with a share of the bytes
};
inline constexpr std::uint8_t kPathCount = 3;

/// Any range of the vector is such a collective, too, so that trees and ranks can each carry one.
[[nodiscard]] bool can_split(Collective collective) noexcept;
/// A share of an operation's bytes, in whole numbers so that all ranks cut alike.
inline constexpr std::uint32_t kWholeShare = 1U << 16;
[[nodiscard]] const char* name(Path path) noexcept;

/// An operation, as far as the choice depends on it.
struct Call {
  Collective collective = Collective::all_reduce;
  std::uint32_t ranks = 1;
  std::uint64_t bytes = 0;  // of the whole vector: amount_in_all()
};

/// An estimate, in microseconds.
struct Estimate {
  Path path = Path::ranks;
  Algorithm algorithm = Algorithm::ring;  // between the ranks; meaningless for Path::tree
  std::uint32_t tree_share = 0;           // of kWholeShare; for Path::split alone
  double latency_us = 0;
  double transfer_us = 0;
  double processors_us = 0;
  [[nodiscard]] double time_us() const noexcept {
    const double alone = latency_us + transfer_us;
    return alone > processors_us ? alone : processors_us;
  }
};

[[nodiscard]] Estimate estimate_tree(const Figures& figures, const Call& call) noexcept;
/// Trees and `algorithm` at once, with the share that lets both end together; nullopt: a share of nothing or of all
/// would be quickest, the trees' rate is not known, or the collective is no single vector.
[[nodiscard]] std::optional<Estimate> estimate_split(const Figures& figures, const Call& call, Algorithm algorithm);
/// The collective must have `algorithm`.
[[nodiscard]] Estimate estimate_ranks(const Figures& figures, const Call& call, Algorithm algorithm) noexcept;

/// All ways, the quickest first. Equal ones keep their order: the tree, then as schedule::algorithms() lists them.
[[nodiscard]] std::vector<Estimate> estimates(const Figures& figures, const Call& call);

}  // namespace tributary::tuning
