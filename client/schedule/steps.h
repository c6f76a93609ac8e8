#pragma once
// One function per phase of an algorithm: it emits the actions of `rank` in one step. There are at least 2 ranks and at
// least one element (except in the barrier).
#include <cstdint>

#include "client/schedule/emitter.h"
#include "client/schedule/schedule.h"

namespace tributary::schedule {

/// Returns the slice of p.count elements at the start of a buffer.
[[nodiscard]] inline Slice all_of(const Parameters& p, Buffer buffer) noexcept {
  return {buffer, 0, p.count};
}

// Phases in ring.cc, of N - 1 steps each.
Step ring_reduce_scatter;  // all_reduce, reduce, reduce_scatter
Step ring_all_gather;      // all_reduce, all_gather
Step ring_broadcast;       // broadcast, after scatter_for_broadcast

// Phases in doubling.cc, for all_reduce. fold and unfold have one step each, if N is no power of two; the other phases
// have floor(log2 N) steps.
Step fold;
Step exchange;  // recursive doubling
Step halve;     // halving-doubling: its reduce-scatter
Step regrow;    // halving-doubling: its all-gather
Step unfold;
[[nodiscard]] std::uint64_t exchange_scratch(const Parameters& p) noexcept;

// Phases in tree.cc, of ceil(log2 N) steps each.
Step binomial_broadcast;
Step binomial_reduce;
Step binomial_gather;
Step binomial_scatter;
Step scatter_for_broadcast;

// Phases in direct.cc. The steps of exchange_parts, to_root and from_root do not depend on each other.
Step barrier;           // ceil(log2 N) steps
Step bruck_all_gather;  // ceil(log2 N) steps
Step exchange_parts;    // N - 1 steps; all_to_all, reduce_scatter
Step reduce_parts;      // reduce_parts_steps() steps; reduce_scatter
Step to_root;           // N - 1 steps; gather, reduce
Step from_root;         // N - 1 steps; scatter
Step copy_alone;        // 1 step; for a communicator of one rank

// Phases in exact.cc: N - 1 steps that do not depend on each other, and one step.
Step exchange_inputs;  // all_reduce, reduce, reduce_scatter
Step reduce_inputs;
[[nodiscard]] bool is_short(const Parameters& p) noexcept;  // an all_reduce that ends with reduce_inputs
[[nodiscard]] std::uint64_t exact_scratch(const Parameters& p) noexcept;
/// Returns the place where reduce_inputs leaves this rank's part.
[[nodiscard]] Slice exact_result(const Parameters& p) noexcept;
[[nodiscard]] std::uint64_t reduce_parts_steps(std::uint32_t ranks) noexcept;

/// Returns the place where ring_reduce_scatter leaves this rank's part of a reduce; to_root sends it from there.
[[nodiscard]] Slice ring_reduce_scatter_result(const Parameters& p) noexcept;

}  // namespace tributary::schedule
