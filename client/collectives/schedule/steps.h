#pragma once
// One function per phase of an algorithm: what `rank` does in one step, for 2 ranks or more and at least one element
// (but for the barrier).
#include <cstdint>

#include "client/collectives/schedule/emitter.h"
#include "client/collectives/schedule/schedule.h"

namespace tributary::schedule {

// ring.cc. N - 1 steps each.
void ring_reduce_scatter(const Parameters& p, std::uint64_t step,
                         Emitter& emit) noexcept;  // all_reduce, reduce, reduce_scatter
void ring_all_gather(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;  // all_reduce, all_gather
void ring_broadcast(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;   // after scatter_for_broadcast

// doubling.cc. all_reduce: fold and unfold are one step each, for numbers of ranks that are no power of two; the others
// floor(log2 N).
void fold(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;
void exchange(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;  // recursive doubling
void halve(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;     // halving-doubling: reduce-scatter
void regrow(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;    // halving-doubling: all-gather
void unfold(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;
[[nodiscard]] std::uint64_t exchange_scratch(const Parameters& p) noexcept;

// tree.cc. ceil(log2 N) steps each.
void binomial_broadcast(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;
void binomial_reduce(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;
void binomial_gather(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;
void binomial_scatter(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;
void scatter_for_broadcast(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;

// direct.cc. The steps of exchange_parts, to_root and from_root do not depend on each other.
void barrier(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;           // ceil(log2 N) steps
void bruck_all_gather(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;  // ceil(log2 N) steps
void exchange_parts(const Parameters& p, std::uint64_t step,
                    Emitter& emit) noexcept;  // N - 1: all_to_all, reduce_scatter
void reduce_parts(const Parameters& p, std::uint64_t step,
                  Emitter& emit) noexcept;                                         // reduce_parts_steps: reduce_scatter
void to_root(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;     // N - 1: gather, reduce
void from_root(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;   // N - 1: scatter
void copy_alone(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept;  // 1: the only rank
[[nodiscard]] std::uint64_t reduce_parts_steps(std::uint32_t ranks) noexcept;

/// Where ring_reduce_scatter leaves this rank's part of a reduce; to_root sends it from there.
[[nodiscard]] Slice ring_reduce_scatter_result(const Parameters& p) noexcept;

}  // namespace tributary::schedule
