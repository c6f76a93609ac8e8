// Binomial trees over places: the ranks counted from the root. The parent of place v is v without its lowest bit, so a
// subtree is a contiguous range of places:
//
//   0 --- 1                  8 places; the subtree of 4 is 4..7
//   0 --- 2 --- 3            towards the root, bit by bit from the lowest bit: step k joins v and v + 2^k
//   0 --- 4 --- 5            away from the root, bit by bit from the highest bit
//         4 --- 6 --- 7
#include "client/schedule/partition.h"
#include "client/schedule/steps.h"

namespace tributary::schedule {
namespace {

/// The role of a place in the step of a bit: the parent of place + bit, the child of place - bit, or none.
enum class Role : std::uint8_t { none, parent, child };

Role role_of(const Parameters& p, std::uint32_t place, std::uint32_t bit) noexcept {
  const std::uint32_t low = place % (2 * bit);
  if (low == bit) return Role::child;
  return low == 0 && place + bit < p.ranks ? Role::parent : Role::none;
}

std::uint32_t bit_towards_root(std::uint64_t step) noexcept {
  return 1U << step;
}
std::uint32_t bit_from_root(const Parameters& p, std::uint64_t step) noexcept {
  return 1U << (ceil_log2(p.ranks) - 1 - step);
}

/// Calls use(begin, end) for the places [begin, end) of a subtree. It calls `use` twice if the ranks wrap around after
/// the last rank, because the root's array is in rank order.
template <class Use>
void for_each_range(const Parameters& p, std::uint32_t place, Use use) noexcept {
  const std::uint32_t end = place + subtree(p, place);
  const std::uint32_t rank_zero = p.ranks - p.root;  // the place of rank 0, unless it is the root
  if (place < rank_zero && rank_zero < end) {
    use(place, rank_zero);
    use(rank_zero, end);
  } else {
    use(place, end);
  }
}

/// Returns, for gather and scatter, where `holder` has the parts of places [begin, end). The root has them in its
/// array, in rank order. A leaf has only its own part, in its own array. Other ranks have them in scratch, in place
/// order.
Slice parts_at(const Parameters& p, std::uint32_t holder, std::uint32_t begin, std::uint32_t end, Buffer own) noexcept {
  const std::uint64_t count = (end - begin) * p.count;
  if (holder == 0) return {own == Buffer::send ? Buffer::recv : Buffer::send, rank_at(p, begin) * p.count, count};
  if (subtree(p, holder) == 1) return {own, 0, count};
  return {Buffer::scratch, (begin - holder) * p.count, count};
}

}  // namespace

void binomial_broadcast(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint32_t place = place_of(p);
  const std::uint32_t bit = bit_from_root(p, step);
  const Role role = role_of(p, place, bit);
  // Copy last, when no rank waits for this rank.
  if (place == 0 && bit == 1 && !p.in_place) emit.copy(all_of(p, Buffer::send), all_of(p, Buffer::recv));
  if (role == Role::parent) emit.send(rank_at(p, place + bit), all_of(p, place == 0 ? Buffer::send : Buffer::recv));
  if (role == Role::child) emit.receive(rank_at(p, place - bit), all_of(p, Buffer::recv));
}

void binomial_reduce(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint32_t place = place_of(p);
  const std::uint32_t bit = bit_towards_root(step);
  const Role role = role_of(p, place, bit);
  const bool last = step + 1 == ceil_log2(p.ranks);
  const Slice sum = all_of(p, place == 0 ? Buffer::recv : Buffer::scratch);
  // A rank that has children gets the input of its first child in step 0.
  const Slice before = step == 0 || subtree(p, place) == 1 ? all_of(p, Buffer::send) : sum;
  if (role == Role::parent) {
    emit.receive_reduce({.peer = rank_at(p, place + bit),
                         .landing = Landing::received_second,
                         .divisor = last ? p.ranks : 1,
                         .received_ranks = subtree(p, place + bit),
                         .operand_ranks = bit},
                        sum, before);
  }
  if (role == Role::child) emit.send(rank_at(p, place - bit), before);
}

void binomial_gather(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint32_t place = place_of(p);
  const std::uint32_t bit = bit_towards_root(step);
  const Role role = role_of(p, place, bit);
  const bool own_part_moves = place == 0 ? !p.in_place : subtree(p, place) > 1;
  if (step == 0 && own_part_moves)
    emit.copy(all_of(p, Buffer::send), parts_at(p, place, place, place + 1, Buffer::send));
  if (role == Role::parent) {
    for_each_range(p, place + bit, [&](std::uint32_t begin, std::uint32_t end) {
      emit.receive(rank_at(p, place + bit), parts_at(p, place, begin, end, Buffer::send));
    });
  }
  if (role == Role::child) {
    for_each_range(p, place, [&](std::uint32_t begin, std::uint32_t end) {
      emit.send(rank_at(p, place - bit), parts_at(p, place, begin, end, Buffer::send));
    });
  }
}

void binomial_scatter(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const std::uint32_t place = place_of(p);
  const std::uint32_t bit = bit_from_root(p, step);
  const Role role = role_of(p, place, bit);
  const bool own_part_moves = place == 0 ? !p.in_place : subtree(p, place) > 1;
  if (bit == 1 && own_part_moves)
    emit.copy(parts_at(p, place, place, place + 1, Buffer::recv), all_of(p, Buffer::recv));
  if (role == Role::parent) {
    for_each_range(p, place + bit, [&](std::uint32_t begin, std::uint32_t end) {
      emit.send(rank_at(p, place + bit), parts_at(p, place, begin, end, Buffer::recv));
    });
  }
  if (role == Role::child) {
    for_each_range(p, place, [&](std::uint32_t begin, std::uint32_t end) {
      emit.receive(rank_at(p, place - bit), parts_at(p, place, begin, end, Buffer::recv));
    });
  }
}

void scatter_for_broadcast(const Parameters& p, std::uint64_t step, Emitter& emit) noexcept {
  const Partition parts = partition_of(p);
  const std::uint32_t place = place_of(p);
  const std::uint32_t bit = bit_from_root(p, step);
  const auto subtree_parts = [&](Buffer buffer, std::uint32_t child) {
    return parts.range(buffer, child, child + subtree(p, child));
  };
  const Role role = role_of(p, place, bit);
  if (role == Role::parent) {
    emit.send(rank_at(p, place + bit), subtree_parts(place == 0 ? Buffer::send : Buffer::recv, place + bit));
  }
  if (role == Role::child) emit.receive(rank_at(p, place - bit), subtree_parts(Buffer::recv, place));
}

}  // namespace tributary::schedule
