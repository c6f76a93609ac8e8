// All_reduce between pairs whose distance doubles. With p the largest power of two <= N, the first 2 (N - p) ranks
// fold: each even rank sends its input to the odd rank after it, and waits for the result. The other p ranks go on; as
// *cores* they get new numbers, in rank order:
//
//   N = 6, p = 4:   rank    0    1    2    3    4    5
//                   core    -    0    -    1    2    3
//
// Before step j, each core has combined an aligned block of 2^j cores. In step j, cores c and c ^ 2^j combine their two
// blocks; the lower block is always the first operand. So both cores compute the same bits, and every rank's input
// enters the result in rank order.
#include <optional>
#include <utility>

#include "client/schedule/partition.h"
#include "client/schedule/steps.h"

namespace tributary::schedule {
namespace {

struct Core {
  std::uint32_t cores;                 // p
  std::uint32_t steps;                 // log2 p
  std::uint32_t folded;                // N - p
  std::optional<std::uint32_t> index;  // this rank's number among the cores; nullopt: it is no core
  bool has_fold;                       // this rank has combined its input with the input of the rank before it

  [[nodiscard]] std::uint32_t rank_of(std::uint32_t core) const noexcept {
    return core < folded ? 2 * core + 1 : core + folded;
  }
  /// Returns how many ranks' inputs a core has combined before `step`: the inputs of its aligned block of 2^step cores.
  [[nodiscard]] std::uint32_t ranks_below(std::uint32_t core, std::uint64_t step) const noexcept {
    const std::uint32_t size = 1U << step;
    const std::uint32_t begin = core & ~(size - 1);
    return size + std::min(size, folded - std::min(folded, begin));
  }
};

Core core_of(const Parameters& p) noexcept {
  const std::uint32_t cores = std::bit_floor(p.ranks);
  Core core{cores, ceil_log2(cores), p.ranks - cores, std::nullopt, false};
  if (p.rank >= 2 * core.folded) {
    core.index = p.rank - core.folded;
  } else if (p.rank % 2 == 1) {
    core.index = p.rank / 2;
    core.has_fold = true;
  }
  return core;
}

Landing order(std::uint32_t core, std::uint32_t partner) noexcept {
  return core < partner ? Landing::received_second : Landing::received_first;
}

/// Returns the place of the partial result before `step`, which is at least 1: before step 0 the partial result is the
/// input itself. Recursive doubling sends its whole partial result while it receives the partner's. So the sum must go
/// to another place: recv and scratch take turns, and the last step ends in recv.
Buffer turn(const Core& core, std::uint64_t step) noexcept {
  return (core.steps - step) % 2 == 0 ? Buffer::recv : Buffer::scratch;
}

/// True if the input must move to another place first: the call is in place, and the first step writes to recv.
bool input_must_move(const Parameters& p, const Core& core) noexcept {
  return p.in_place && !core.has_fold && turn(core, 1) == Buffer::recv;
}

/// Returns, for halving-doubling, the range of the p parts on which a core works after `steps` halvings.
std::pair<std::uint64_t, std::uint64_t> kept(std::uint32_t core, std::uint32_t cores, std::uint64_t steps) noexcept {
  std::uint64_t begin = 0;
  std::uint64_t width = cores;
  for (std::uint64_t step = 0; step < steps; ++step) {
    width /= 2;
    if ((core >> step & 1U) != 0) begin += width;
  }
  return {begin, begin + width};
}

Slice kept_slice(const Parameters& p, Buffer buffer, std::uint32_t core, std::uint32_t cores,
                 std::uint64_t steps) noexcept {
  const auto [begin, end] = kept(core, cores, steps);
  return Partition{p.count, cores}.range(buffer, begin, end);
}

}  // namespace

void fold(const Parameters& p, std::uint64_t /*step*/, Emitter& emit) noexcept {
  const Core core = core_of(p);
  const Slice input = all_of(p, Buffer::send);
  if (!core.index) {
    emit.send(p.rank + 1, input);
  } else if (core.has_fold) {
    const Buffer into = p.algorithm == Algorithm::recursive_doubling ? turn(core, 0) : Buffer::recv;
    emit.receive_reduce({.peer = p.rank - 1, .landing = Landing::received_first}, all_of(p, into), input);
  }
}

void unfold(const Parameters& p, std::uint64_t /*step*/, Emitter& emit) noexcept {
  const Core core = core_of(p);
  const Slice result = all_of(p, Buffer::recv);
  if (!core.index) {
    emit.receive(p.rank + 1, result);
  } else if (core.has_fold) {
    emit.send(p.rank - 1, result);
  }
}

std::uint64_t exchange_scratch(const Parameters& p) noexcept {
  const Core core = core_of(p);
  if (!core.index) return 0;
  const bool only_step_reads_input = core.steps == 1 && !core.has_fold && !p.in_place;
  return only_step_reads_input ? 0 : p.count;
}

void exchange(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Core core = core_of(p);
  if (!core.index) return;
  Buffer from = turn(core, step);
  if (step == 0 && !core.has_fold) {
    from = Buffer::send;
    if (input_must_move(p, core)) {
      from = Buffer::scratch;
      emit.copy(all_of(p, Buffer::send), all_of(p, from));
    }
  }
  const std::uint32_t partner = *core.index ^ (1U << step);
  const std::uint32_t peer = core.rank_of(partner);
  const bool last = step + 1 == core.steps;
  emit.send(peer, all_of(p, from));
  emit.receive_reduce({.peer = peer,
                       .landing = order(*core.index, partner),
                       .divisor = last ? p.ranks : 1,
                       .received_ranks = core.ranks_below(partner, step),
                       .operand_ranks = core.ranks_below(*core.index, step)},
                      all_of(p, turn(core, step + 1)), all_of(p, from));
}

void halve(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Core core = core_of(p);
  if (!core.index) return;
  const std::uint32_t partner = *core.index ^ (1U << step);
  const std::uint32_t peer = core.rank_of(partner);
  const Buffer from = step == 0 && !core.has_fold ? Buffer::send : Buffer::recv;
  const bool last = step + 1 == core.steps;
  emit.send(peer, kept_slice(p, from, partner, core.cores, step + 1));
  emit.receive_reduce({.peer = peer,
                       .landing = order(*core.index, partner),
                       .divisor = last ? p.ranks : 1,
                       .received_ranks = core.ranks_below(partner, step),
                       .operand_ranks = core.ranks_below(*core.index, step)},
                      kept_slice(p, Buffer::recv, *core.index, core.cores, step + 1),
                      kept_slice(p, from, *core.index, core.cores, step + 1));
}

void regrow(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Core core = core_of(p);
  if (!core.index) return;
  const std::uint64_t level = core.steps - step;  // after this step, level - 1 halvings must still be undone
  const std::uint32_t partner = *core.index ^ (1U << (level - 1));
  const std::uint32_t peer = core.rank_of(partner);
  emit.send(peer, kept_slice(p, Buffer::recv, *core.index, core.cores, level));
  emit.receive(peer, kept_slice(p, Buffer::recv, partner, core.cores, level));
}

}  // namespace tributary::schedule
