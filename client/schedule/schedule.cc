// Composes an algorithm from phases, and finds the steps of a round.
#include "client/schedule/schedule.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "client/schedule/emitter.h"
#include "client/schedule/partition.h"
#include "client/schedule/steps.h"
#include "tributary/protocol/assert.h"

namespace tributary::schedule {
namespace {

void check(const Parameters& p) {
  const auto refuse = [&](const char* why) {
    throw std::invalid_argument("schedule of " + std::string(to_string(p.collective)) + " by " + name(p.algorithm) +
                                ": " + why);
  };
  const auto possible = algorithms(p.collective);
  const bool possible_exactly = p.exact && p.algorithm == Algorithm::direct && row_of(p.collective).reduces;
  if (p.exact && !possible_exactly) refuse("no exact reduction");
  if (!p.exact && std::ranges::find(possible, p.algorithm) == possible.end())
    refuse("not an algorithm for this collective");
  if (p.rank >= p.ranks) refuse("rank is not below the number of ranks");
  if (has_root(p.collective) && p.root >= p.ranks) refuse("root is not below the number of ranks");
  if (p.element_bytes == 0) refuse("an element has no bytes");
  if (p.in_place && p.collective == Collective::all_to_all) refuse("all_to_all is never in place");
}

}  // namespace

Schedule::Schedule(const Parameters& parameters) : parameters_(parameters) {
  check(parameters_);
  piece_count_ = std::max<std::uint64_t>(1, parameters_.piece_bytes / parameters_.element_bytes);
  compose();
}

void Schedule::add(Step& step, std::uint64_t steps, std::uint64_t message_count, bool independent,
                   std::uint64_t piece_count) noexcept {
  TRIBUTARY_ASSERT(phase_count_ < kPhasesMax, "phase {} of at most {}", phase_count_ + 1, kPhasesMax);
  Phase& phase = phases_[phase_count_++];
  phase.piece_count = piece_count > 0 ? piece_count : piece_count_;
  const std::uint64_t pieces = std::max<std::uint64_t>(1, (message_count + phase.piece_count - 1) / phase.piece_count);
  phase.step = &step;
  phase.steps = steps;
  if (independent) phase.steps_per_round = std::max<std::uint64_t>(1, kPiecesPerRound / pieces);
  phase.rounds_per_step = (pieces + kPiecesPerRound - 1) / kPiecesPerRound;
  rounds_ += phase.rounds();
}

void Schedule::compose() noexcept {
  const Parameters& p = parameters_;
  if (p.collective == Collective::barrier) {
    if (p.ranks > 1) add(barrier, ceil_log2(p.ranks), 0);
    return;
  }
  if (p.count == 0) return;
  if (p.ranks == 1) {
    if (!p.in_place) add(copy_alone, 1, p.count);
    return;
  }
  if (p.exact) return compose_exact();
  if (p.collective == Collective::all_reduce) return compose_all_reduce();
  if (has_root(p.collective)) return compose_rooted();
  compose_by_parts();
}

void Schedule::compose_all_reduce() noexcept {
  const Parameters& p = parameters_;
  TRIBUTARY_ASSERT(p.ranks > 0, "a schedule for {} ranks", p.ranks);
  const std::uint32_t cores = std::bit_floor(p.ranks);
  const std::uint64_t steps = ceil_log2(cores);
  const std::uint64_t largest_part = partition_of(p).largest();
  if (p.algorithm == Algorithm::ring) {
    add(ring_reduce_scatter, p.ranks - 1, largest_part);
    add(ring_all_gather, p.ranks - 1, largest_part);
    return;
  }
  if (cores != p.ranks) add(fold, 1, p.count);
  if (p.algorithm == Algorithm::recursive_doubling) {
    add(exchange, steps, p.count);
    scratch_count_ = exchange_scratch(p);
  } else {
    const std::uint64_t largest_half = Partition{p.count, cores}.range(Buffer::recv, 0, cores / 2).count;
    add(halve, steps, largest_half);
    add(regrow, steps, largest_half);
  }
  if (cores != p.ranks) add(unfold, 1, p.count);
}

void Schedule::compose_exact() noexcept {
  const Parameters& p = parameters_;
  const std::uint64_t largest_part = is_short(p) ? p.count : partition_of(p).largest();
  add(exchange_inputs, p.ranks - 1, largest_part, true, p.input_elements_max);
  add(reduce_inputs, 1, 0);
  if (p.collective == Collective::all_reduce && !is_short(p)) add(ring_all_gather, p.ranks - 1, largest_part);
  if (p.collective == Collective::reduce) add(to_root, p.ranks - 1, largest_part, true);
  scratch_count_ = exact_scratch(p);
}

void Schedule::compose_rooted() noexcept {
  const Parameters& p = parameters_;
  const std::uint64_t tree_steps = ceil_log2(p.ranks);
  const std::uint64_t largest_subtree = std::uint64_t{1}
                                        << (tree_steps - 1);  // the largest subtree, except the root's tree
  const std::uint64_t largest_part = partition_of(p).largest();
  const std::uint32_t place = place_of(p);
  const bool inner = place != 0 && subtree(p, place) > 1;
  if (p.algorithm == Algorithm::reduce_scatter_gather) {
    add(ring_reduce_scatter, p.ranks - 1, largest_part);
    add(to_root, p.ranks - 1, largest_part, true);
    scratch_count_ = 2 * largest_part;
  } else if (p.algorithm == Algorithm::scatter_all_gather) {
    add(scatter_for_broadcast, tree_steps, partition_of(p).range(Buffer::recv, 0, largest_subtree).count);
    add(ring_broadcast, p.ranks - 1, largest_part);
  } else if (p.algorithm == Algorithm::linear) {
    add(p.collective == Collective::gather ? to_root : from_root, p.ranks - 1, p.count, true);
  } else if (p.collective == Collective::broadcast) {
    add(binomial_broadcast, tree_steps, p.count);
  } else if (p.collective == Collective::reduce) {
    add(binomial_reduce, tree_steps, p.count);
    scratch_count_ = inner ? p.count : 0;
  } else {
    add(p.collective == Collective::gather ? binomial_gather : binomial_scatter, tree_steps, largest_subtree * p.count);
    scratch_count_ = inner ? subtree(p, place) * p.count : 0;
  }
}

void Schedule::compose_by_parts() noexcept {
  const Parameters& p = parameters_;
  if (p.collective == Collective::all_to_all) {
    add(exchange_parts, p.ranks - 1, p.count, true);
  } else if (p.algorithm == Algorithm::direct) {
    add(exchange_parts, p.ranks - 1, p.count, true);
    add(reduce_parts, reduce_parts_steps(p.ranks), 0);
    scratch_count_ = p.ranks * p.count;
  } else if (p.collective == Collective::reduce_scatter) {
    add(ring_reduce_scatter, p.ranks - 1, p.count);
    scratch_count_ = p.ranks > 2 ? 2 * p.count : 0;
  } else if (p.algorithm == Algorithm::bruck) {
    add(bruck_all_gather, ceil_log2(p.ranks), (p.ranks / 2) * p.count);
  } else {
    add(ring_all_gather, p.ranks - 1, p.count);
  }
}

void Schedule::actions(std::uint64_t round, Actions& out) const noexcept {
  TRIBUTARY_ASSERT(round < rounds_, "round {} of {}", round, rounds_);
  out.clear();
  std::size_t index = 0;
  while (round >= phases_[index].rounds()) round -= phases_[index++].rounds();
  const Phase& phase = phases_[index];
  const std::uint64_t first = round / phase.rounds_per_step * phase.steps_per_round;
  const std::uint64_t end = std::min(phase.steps, first + phase.steps_per_round);
  TRIBUTARY_ASSERT(first < end, "phase {} of {} steps has no step {}", index, phase.steps, first);
  Emitter emit(out, phase.piece_count, round % phase.rounds_per_step);
  for (std::uint64_t step = first; step < end; ++step) phase.step(parameters_, step, emit);
}

}  // namespace tributary::schedule
