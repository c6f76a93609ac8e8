// Rings: every rank sends to the next rank and receives from the rank before it, so both directions of its link are
// always busy.
//
// Reduce-scatter, 4 ranks: part c starts at rank c + 1 and passes all ranks in order. Each rank adds its own input, and
// the part ends at rank c with the inputs of all ranks:
//
//   step 0   rank 0 sends part 3, rank 1 part 0, rank 2 part 1, rank 3 part 2
//   step 1   rank 0 sends part 2 (of ranks 3, 0), ...
//   step 2   rank 0 sends part 1 (of ranks 2, 3, 0) to rank 1, which owns it, and receives part 0, which it owns
//
// All-gather: every rank first sends its own part, and then passes on the part that it received in the step before.
#include "client/schedule/partition.h"
#include "client/schedule/steps.h"

namespace tributary::schedule {
namespace {

/// Returns the place of the partial result that arrived in `step`; the next step passes it on. All_reduce has room in
/// recv; other collectives alternate between two places in scratch, one for sending and one for receiving.
Slice partial_result(const Parameters& p, std::uint64_t step, std::uint64_t part) noexcept {
  const Partition parts = partition_of(p);
  if (p.collective == Collective::all_reduce) return parts.part(Buffer::recv, part);
  return {Buffer::scratch, step % 2 * parts.largest(), parts.part(Buffer::recv, part).count};
}

}  // namespace

Slice ring_reduce_scatter_result(const Parameters& p) noexcept {
  const Partition parts = partition_of(p);
  if (p.collective == Collective::reduce_scatter) return {Buffer::recv, 0, p.count};
  if (p.collective == Collective::all_reduce || p.rank == p.root) return parts.part(Buffer::recv, p.rank);
  return partial_result(p, p.ranks - 2, p.rank);
}

void ring_reduce_scatter(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Partition parts = partition_of(p);
  const std::uint32_t leaving = behind(p, step + 1);
  const std::uint32_t arriving = behind(p, step + 2);
  const bool last = step == p.ranks - 2;
  emit.send(ahead(p, 1), step == 0 ? parts.part(Buffer::send, leaving) : partial_result(p, step - 1, leaving));
  emit.receive_reduce({.peer = behind(p, 1),
                       .landing = Landing::received_first,
                       .divisor = last ? p.ranks : 1,
                       .received_ranks = static_cast<std::uint32_t>(step + 1)},
                      last ? ring_reduce_scatter_result(p) : partial_result(p, step, arriving),
                      parts.part(Buffer::send, arriving));
}

void ring_all_gather(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Partition parts = partition_of(p);
  const bool own_part_is_input = step == 0 && p.collective == Collective::all_gather;
  const Slice input{Buffer::send, 0, p.count};
  if (own_part_is_input && !p.in_place) emit.copy(input, parts.part(Buffer::recv, p.rank));
  emit.send(ahead(p, 1), own_part_is_input ? input : parts.part(Buffer::recv, behind(p, step)));
  emit.receive(behind(p, 1), parts.part(Buffer::recv, behind(p, step + 1)));
}

// Parts are numbered by place. The scatter before this phase gave each inner node of the tree the parts of a contiguous
// range of places. A rank does not receive the parts of its own range again. The root has all parts, so it copies its
// input to its output, one part per step, while the other ranks transfer parts.
void ring_broadcast(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Partition parts = partition_of(p);
  const auto holds = [&](std::uint64_t place, std::uint64_t part) {
    return part >= place && part < place + subtree(p, static_cast<std::uint32_t>(place));
  };
  const std::uint64_t place = place_of(p);
  const std::uint64_t next = (place + 1) % p.ranks;
  const std::uint64_t leaving = (place + p.ranks - step) % p.ranks;
  const std::uint64_t arriving = (place + p.ranks - step - 1) % p.ranks;
  if (place == 0 && !p.in_place) {
    if (step == 0) emit.copy_in_pieces(parts.part(Buffer::send, 0), parts.part(Buffer::recv, 0));
    emit.copy_in_pieces(parts.part(Buffer::send, arriving), parts.part(Buffer::recv, arriving));
  }
  if (!holds(next, leaving)) emit.send(ahead(p, 1), parts.part(place == 0 ? Buffer::send : Buffer::recv, leaving));
  if (!holds(place, arriving)) emit.receive(behind(p, 1), parts.part(Buffer::recv, arriving));
}

}  // namespace tributary::schedule
