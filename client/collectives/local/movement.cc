#include "client/collectives/local/movement.h"

#include <algorithm>
#include <array>

#include "client/collectives/local/copy.h"
#include "client/collectives/local/sizes.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/collective.h"
#include "tributary/protocol/numerics.h"

namespace tributary::client::local {

Movement::Movement(const Call& call, std::uint32_t rank, std::uint32_t ranks, const Layout& layout,
                   std::span<const void*> inputs) noexcept
    : call_(call), inputs_(inputs), rank_(rank), ranks_(ranks), element_(size_of(call.signature.dtype)) {
  const Signature& s = call.signature;
  const CollectiveRow& row = row_of(s.collective);
  const bool is_root = s.root == rank;
  offers_ = row.senders == Holders::all || is_root;
  wants_ = row.receivers == Holders::all || is_root;
  if (s.collective == Collective::broadcast) wants_ = call.recv != nullptr;
  reduces_ = row.reduces;
  takes_ = row.recv != Extent::none && !(row.reduces && row.send == Extent::per_rank);
  shape_ = row.send == Extent::per_rank             ? Shape::parts
           : row.reduces && row.send == Extent::one ? Shape::sliced
                                                    : Shape::whole;
  if (s.collective == Collective::barrier) call_.signature.count = 0;
  const std::uint64_t count = call_.signature.count;
  offered_bytes_ = count * element_ * (shape_ == Shape::parts ? ranks : 1);
  by_notes_ = offered_bytes_ <= layout.note_bytes();
  if (by_notes_) return;
  // Do not stream in place: the destination is in the cache, because it was just read as the input, and a store past
  // the cache would first have to evict it.
  streams_ = offered_bytes_ >= kStreamBytesMin && !call.in_place;
  const std::uint64_t most = (shape_ == Shape::whole ? layout.chunk_bytes() : layout.slice_bytes()) / element_;
  // The number of slices of the vector that one chunk holds.
  const std::uint64_t slices = shape_ == Shape::sliced ? ranks : 1;
  const std::uint64_t line = kLineBytes / element_;
  // Make all chunks equally long: no other step can overlap with a short last chunk.
  const std::uint64_t even = divided_up(count, divided_up(count, most * slices) * slices);
  slice_elements_ = std::min(most, divided_up(even, line) * line);
  chunks_ = divided_up(count, slice_elements_ * slices);
}

Movement::Slice Movement::slice(std::uint64_t index, std::uint32_t of) const noexcept {
  const std::uint64_t ordinal = shape_ == Shape::sliced ? index * ranks_ + of : index;
  const std::uint64_t begin = std::min(ordinal * slice_elements_, call_.signature.count);
  return {begin, std::min(slice_elements_, call_.signature.count - begin)};
}

std::uint64_t Movement::place_of(const Slice& slice, std::uint32_t of) const noexcept {
  return shape_ == Shape::parts ? of * call_.signature.count + slice.begin : slice.begin;
}

void Movement::write_note(std::byte* into) const noexcept {
  if (offers_) copy_plain(into, call_.send, offered_bytes_);
}

// Reduces all inputs. The kernels take all inputs of an exact sum, or of an ordered product, at once. Otherwise they take a limited number, so
// more inputs need several passes; each pass takes the result of the pass before it as its first input.
template <class Input>
void Movement::combine(Input input, std::byte* out, std::uint64_t count) const noexcept {
  if (takes_all_inputs(call_.signature.op)) {
    TRIBUTARY_ASSERT(inputs_.size() == ranks_, "{} places for the inputs of {} ranks", inputs_.size(), ranks_);
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) inputs_[rank] = input(rank);
    return kernels::reduce_step(call_.signature.dtype, call_.signature.op, inputs_, out, count, {.divisor = ranks_});
  }
  std::array<const void*, kernels::kReduceInputsMax> inputs;
  std::array<std::uint32_t, kernels::kReduceInputsMax> ranks;
  ranks.fill(1);
  for (std::uint32_t next = 0; next < ranks_;) {
    std::size_t n = 0;
    if (next > 0) {
      ranks[0] = next;
      inputs[n++] = out;
    }
    while (n < inputs.size() && next < ranks_) inputs[n++] = input(next++);
    kernels::reduce_step(call_.signature.dtype, call_.signature.op, {inputs.data(), n}, out, count,
                         {.divisor = next == ranks_ ? ranks_ : 1, .ranks = {ranks.data(), n}});
  }
}

// Copies data from this rank to itself; such data never go through the shared memory.
void Movement::copy_own_part(std::uint64_t begin, std::uint64_t count) const noexcept {
  if (call_.in_place) return;
  const std::uint64_t n = call_.signature.count;
  const std::uint64_t own = rank_ * n;
  std::uint64_t from = begin, to = begin;
  switch (call_.signature.collective) {
    case Collective::all_gather:
    case Collective::gather:
      to += own;
      break;
    case Collective::all_to_all:
      from += own, to += own;
      break;
    case Collective::scatter:
      from += own;
      break;
    default:
      break;
  }
  copy_plain(call_.recv + to * element_, call_.send + from * element_, count * element_);
}

void Movement::deliver(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept {
  streams_ ? copy_streamed(to, from, bytes) : copy_plain(to, from, bytes);
}

void Movement::read_notes(const Places& places, std::uint64_t sequence) const noexcept {
  const std::uint64_t count = call_.signature.count;
  if (count == 0 || !wants_) return;
  const std::size_t part = count * element_;
  const auto of = [&](std::uint32_t rank) { return places.noted(rank, sequence, offered_bytes_); };
  const std::uint32_t root = call_.signature.root;
  switch (call_.signature.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      return combine([&](std::uint32_t rank) { return of(rank); }, call_.recv, count);
    case Collective::reduce_scatter:
      return combine([&](std::uint32_t rank) { return of(rank) + rank_ * part; }, call_.recv, count);
    case Collective::all_gather:
    case Collective::gather:
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        if (r != rank_) copy_plain(call_.recv + r * part, of(r), part);
      }
      return copy_own_part(0, count);
    case Collective::all_to_all:
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        if (r != rank_) copy_plain(call_.recv + r * part, of(r) + rank_ * part, part);
      }
      return copy_own_part(0, count);
    case Collective::broadcast:
      if (rank_ == root) return copy_own_part(0, count);
      return copy_plain(call_.recv, of(root), part);
    case Collective::scatter:
      if (rank_ == root) return copy_own_part(0, count);
      return copy_plain(call_.recv, of(root) + rank_ * part, part);
    case Collective::barrier:
      return;
  }
}

void Movement::offer(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept {
  if (!offers_) return;
  std::byte* const row = places.input(rank_, chunk);
  if (shape_ == Shape::whole) {
    const Slice s = slice(index, 0);
    return copy_plain(row, call_.send + s.begin * element_, s.count * element_);
  }
  for (std::uint32_t to = 0; to < ranks_; ++to) {
    if (to == rank_) continue;  // this rank copies its own part from its buffer
    const Slice s = slice(index, to);
    copy_plain(row + row_offset(to), call_.send + place_of(s, to) * element_, s.count * element_);
  }
}

void Movement::reduce(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept {
  const Slice s = slice(index, rank_);
  if (s.count == 0) return;
  const auto input = [&](std::uint32_t rank) -> const std::byte* {
    if (rank == rank_) return call_.send + place_of(s, rank_) * element_;
    return places.input(rank, chunk) + row_offset(rank_);
  };
  std::byte* const row = places.result(rank_, chunk);
  const bool all = call_.signature.collective == Collective::all_reduce;
  std::byte* const recv = wants_ ? call_.recv + s.begin * element_ : nullptr;
  // With several passes, the result of the first pass could overwrite an input in place that a later pass still needs.
  const bool passes = ranks_ > kernels::kReduceInputsMax;
  std::byte* const out = recv == nullptr || all || passes ? row : recv;
  combine(input, out, s.count);
  if (recv != nullptr && recv != out) deliver(recv, out, s.count * element_);
}

void Movement::take(const Places& places, std::uint64_t index, std::uint64_t chunk) const noexcept {
  if (!wants_) return;
  const std::uint64_t count = call_.signature.count;
  const auto into = [&](std::uint64_t element) { return call_.recv + element * element_; };
  if (reduces_) {
    for (std::uint32_t step = 1; step < ranks_; ++step) {
      const std::uint32_t from = (rank_ + step) % ranks_;
      const Slice s = slice(index, from);
      deliver(into(s.begin), places.result(from, chunk), s.count * element_);
    }
    return;
  }
  const Slice s = slice(index, rank_);
  const std::size_t bytes = s.count * element_;
  const std::size_t offset = shape_ == Shape::parts ? row_offset(rank_) : 0;
  const Collective collective = call_.signature.collective;
  if (collective == Collective::broadcast || collective == Collective::scatter) {
    const std::uint32_t root = call_.signature.root;
    if (rank_ == root) return copy_own_part(s.begin, s.count);
    return deliver(into(s.begin), places.input(root, chunk) + offset, bytes);
  }
  for (std::uint32_t step = 1; step < ranks_; ++step) {
    const std::uint32_t from = (rank_ + step) % ranks_;
    deliver(into(from * count + s.begin), places.input(from, chunk) + offset, bytes);
  }
  copy_own_part(s.begin, s.count);
}

}  // namespace tributary::client::local
