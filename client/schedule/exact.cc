// Reductions in which one rank reduces an element once, from the inputs of all ranks: no partial result travels. So
// exact sums need no wider form on the wire, and move as many bytes as a ring.
//
// Every rank sends each other rank that rank's part of its input; each rank reduces its part; then the parts of an
// all_reduce go around a ring, and the parts of a reduce go to the root. A short all_reduce has only parts of the whole
// length: every rank sends its whole input to every other rank, and every rank makes the whole result.
#include "client/schedule/partition.h"
#include "client/schedule/steps.h"

namespace tributary::schedule {
namespace {

/// Returns the elements that `rank` reduces, as a slice of a buffer with the whole vector.
Slice part_of(const Parameters& p, Buffer buffer, std::uint32_t rank) noexcept {
  return is_short(p) ? all_of(p, buffer) : partition_of(p).part(buffer, rank);
}

/// Returns the place, in scratch, of a rank's input to this rank's part: in rank order.
Slice input_of(const Parameters& p, std::uint64_t rank) noexcept {
  const std::uint64_t count = part_of(p, Buffer::send, p.rank).count;
  return {Buffer::scratch, rank * count, count};
}

}  // namespace

bool is_short(const Parameters& p) noexcept {
  return p.collective == Collective::all_reduce && p.count * p.element_bytes <= exact_short_bytes(p.ranks);
}

std::uint64_t exact_scratch(const Parameters& p) noexcept {
  return p.ranks * part_of(p, Buffer::send, p.rank).count;
}

Slice exact_result(const Parameters& p) noexcept {
  if (p.collective == Collective::reduce_scatter) return {Buffer::recv, 0, p.count};
  if (p.collective == Collective::reduce && p.rank != p.root) return input_of(p, 0);
  return part_of(p, Buffer::recv, p.rank);
}

void exchange_inputs(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint32_t to = ahead(p, step + 1);
  const std::uint32_t from = behind(p, step + 1);
  if (step == 0) emit.copy(part_of(p, Buffer::send, p.rank), input_of(p, p.rank));
  emit.send(to, part_of(p, Buffer::send, to));
  emit.receive(from, input_of(p, from));
}

void reduce_inputs(const Parameters& p, std::uint64_t /*step*/, Emitter& emit) noexcept {
  const Slice first = input_of(p, 0);
  if (first.count > 0) emit.reduce({.first = first, .operands = p.ranks, .into = exact_result(p), .divisor = p.ranks});
}

}  // namespace tributary::schedule
