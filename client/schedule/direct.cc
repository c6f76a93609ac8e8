// Algorithms whose messages go straight from the rank that has data to the rank that needs them, and algorithms that
// only forward data or signal.
#include "client/schedule/partition.h"
#include "client/schedule/steps.h"

namespace tributary::schedule {
namespace {

constexpr std::uint32_t kOperandsMax = 64;  // the same limit as kernels::kReduceInputsMax

/// Returns the place, in scratch, of a rank's contribution to this rank's part of a reduce_scatter: in rank order.
Slice contribution(const Parameters& p, std::uint64_t rank) noexcept {
  return {Buffer::scratch, rank * p.count, p.count};
}

/// Calls `use` for parts [begin, begin + number) of recv. They wrap around after the last rank: one slice, or two.
template <class Use>
void for_each_range(const Parameters& p, std::uint64_t begin, std::uint64_t number, Use use) noexcept {
  const Partition parts = partition_of(p);
  const std::uint64_t end = begin + number;
  use(parts.range(Buffer::recv, begin, std::min<std::uint64_t>(end, p.ranks)));
  if (end > p.ranks) use(parts.range(Buffer::recv, 0, end - p.ranks));
}

}  // namespace

void barrier(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint64_t distance = std::uint64_t{1} << step;
  emit.send_signal(ahead(p, distance));
  emit.receive_signal(behind(p, distance));
}

// After k steps a rank has the parts of the 2^k ranks from itself on, each at its final place in recv. Bruck et al.
// rotate a temporary array in the end. This function sends a range that wraps around as two messages instead.
void bruck_all_gather(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint64_t distance = std::uint64_t{1} << step;
  const std::uint64_t number = std::min(distance, p.ranks - distance);
  const std::uint32_t to = behind(p, distance);
  const std::uint32_t from = ahead(p, distance);
  if (step == 0 && !p.in_place) emit.copy({Buffer::send, 0, p.count}, partition_of(p).part(Buffer::recv, p.rank));
  for_each_range(p, p.rank, number, [&](const Slice& slice) { emit.send(to, slice); });
  for_each_range(p, from, number, [&](const Slice& slice) { emit.receive(from, slice); });
}

void exchange_parts(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Partition parts = partition_of(p);
  const auto into = [&](std::uint32_t rank) {
    return p.collective == Collective::all_to_all ? parts.part(Buffer::recv, rank) : contribution(p, rank);
  };
  const std::uint32_t to = ahead(p, step + 1);
  const std::uint32_t from = behind(p, step + 1);
  if (step == 0) emit.copy(parts.part(Buffer::send, p.rank), into(p.rank));
  emit.send(to, parts.part(Buffer::send, to));
  emit.receive(from, into(from));
}

std::uint64_t reduce_parts_steps(std::uint32_t ranks) noexcept {
  return (ranks - 1 + kOperandsMax - 2) /
         (kOperandsMax - 1);  // each pass takes the result of the pass before as one operand
}

void reduce_parts(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint64_t first = step * (kOperandsMax - 1);
  const auto operands = static_cast<std::uint32_t>(std::min<std::uint64_t>(kOperandsMax, p.ranks - first));
  const bool last = step + 1 == reduce_parts_steps(p.ranks);
  emit.reduce({.first = contribution(p, first),
               .operands = operands,
               .into = last ? Slice{Buffer::recv, 0, p.count} : contribution(p, first + operands - 1),
               .divisor = last ? p.ranks : 1,
               .first_ranks = static_cast<std::uint32_t>(first + 1)});
}

void to_root(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Partition parts = partition_of(p);
  const bool gather = p.collective == Collective::gather;
  const std::uint64_t place = place_of(p);
  const Slice input{Buffer::send, 0, p.count};
  if (place == 0) {
    const std::uint32_t from = rank_at(p, step + 1);
    if (gather && step == 0 && !p.in_place) emit.copy(input, parts.part(Buffer::recv, p.rank));
    emit.receive(from, parts.part(Buffer::recv, from));
  } else if (place == step + 1) {
    emit.send(p.root, gather ? input : p.exact ? exact_result(p) : ring_reduce_scatter_result(p));
  }
}

void from_root(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Partition parts = partition_of(p);
  const std::uint64_t place = place_of(p);
  const Slice output{Buffer::recv, 0, p.count};
  if (place == 0) {
    const std::uint32_t to = rank_at(p, step + 1);
    if (step == 0 && !p.in_place) emit.copy(parts.part(Buffer::send, p.rank), output);
    emit.send(to, parts.part(Buffer::send, to));
  } else if (place == step + 1) {
    emit.receive(p.root, output);
  }
}

void copy_alone(const Parameters& p, std::uint64_t /*step*/, Emitter& emit) noexcept {
  emit.copy({Buffer::send, 0, p.count}, {Buffer::recv, 0, p.count});
}

}  // namespace tributary::schedule
