#include "client/collectives/local/direct.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/collectives/local/copy.h"
#include "client/collectives/local/sizes.h"
#include "client/tuning/local_ways.h"
#include "tributary/kernels/reduce_step.h"
#include "tributary/protocol/assert.h"
#include "tributary/protocol/collective.h"

namespace tributary::client::local {

Direct::Direct(std::shared_ptr<Arena> arena, const Places& places, std::uint32_t rank, std::uint32_t ranks,
               Inboxes inboxes, std::span<const FileDescriptor> processes, const AttachRule& attach)
    : places_(places),
      rank_(rank),
      ranks_(ranks),
      regions_(std::make_shared<Regions>(std::move(arena), places, rank, ranks, std::move(inboxes))),
      attachment_(places, rank, ranks, processes, attach),
      reached_(ranks) {}

std::size_t Direct::bytes_of_send(std::uint32_t rank) const noexcept {
  const Signature& s = call_.signature;
  return amount_sent(s.collective, s.count * element_, rank == s.root, ranks_);
}

std::size_t Direct::bytes_of_recv(std::uint32_t rank) const noexcept {
  const Signature& s = call_.signature;
  return amount_received(s.collective, s.count * element_, rank == s.root, ranks_);
}

Buffer Direct::place_of(const std::byte* memory, std::size_t bytes) noexcept {
  if (memory == nullptr || bytes == 0) return {.way = Way::unneeded};
  if (const auto place = regions_->find(memory, bytes)) {
    return {.at = place->offset,
            .generation = place->generation,
            .index = static_cast<std::uint16_t>(place->index),
            .way = Way::region};
  }
  if (!tuning::is_reduction(call_.signature.collective) || !call_.plain_memory || !attachment_.works() ||
      !Attachment::can_copy(memory, bytes)) {
    return {};
  }
  return {.at = reinterpret_cast<std::uintptr_t>(memory), .way = Way::attach};
}

bool Direct::offer(const Call& call, const Movement& movement, std::byte* note) noexcept {
  call_ = call;
  element_ = size_of(call.signature.dtype);
  reduces_ = tuning::is_reduction(call.signature.collective);
  regions_->attend();
  Reach reach{.send = place_of(call.send, movement.offers() ? bytes_of_send(rank_) : 0),
              .recv = place_of(call.recv, movement.wants() ? bytes_of_recv(rank_) : 0)};
  reach.send.in_place = reach.recv.in_place = call.in_place ? 1 : 0;
  const bool attaches = reach.send.way == Way::attach || reach.recv.way == Way::attach;
  const bool possible = ranks_ <= kernels::kReduceInputsMax && reach.send.way != Way::none &&
                        reach.recv.way != Way::none &&
                        (!attaches || tuning::is_worth_attaching(call.signature.collective, movement.offered_bytes()));
  if (!possible) reach = {};
  std::memcpy(note, &reach, sizeof reach);
  return possible;
}

Result<bool> Direct::agree(std::uint64_t sequence) noexcept {
  bool all = true;
  attaches_ = false;
  for (std::uint32_t r = 0; r < ranks_ && all; ++r) {
    Reach reach;
    std::memcpy(&reach, places_.note(r, sequence).few, sizeof reach);
    all = reach.send.way != Way::none && reach.recv.way != Way::none;
    if (!all) break;
    attaches_ = attaches_ || reach.send.way == Way::attach || reach.recv.way == Way::attach;
    if (!resolve(r, reach)) {
      return fail(Errc::corrupt,
                  "rank " + std::to_string(r) + " says that its buffers lie in memory that this rank has not mapped");
    }
  }
  if (!all) return false;
  if (attaches_ && !scratch_) scratch_ = std::make_unique_for_overwrite<std::byte[]>(kScratchBytes);
  cut();
  return true;
}

bool Direct::resolve(std::uint32_t rank, const Reach& reach) noexcept {
  Reached& r = reached_[rank];
  r = {.send_way = reach.send.way, .recv_way = reach.recv.way, .in_place = reach.send.in_place != 0};
  if (rank == rank_) {
    r.send = const_cast<std::byte*>(call_.send);
    r.recv = call_.recv;
    if (r.send_way != Way::unneeded) r.send_way = Way::region;
    if (r.recv_way != Way::unneeded) r.recv_way = Way::region;
    return true;
  }
  const auto find = [&](const Buffer& buffer, std::size_t bytes) -> std::byte* {
    if (buffer.way == Way::region)
      return regions_->at(rank, {.index = buffer.index, .generation = buffer.generation, .offset = buffer.at}, bytes);
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(buffer.at));
  };
  r.send = find(reach.send, bytes_of_send(rank));
  r.recv = find(reach.recv, bytes_of_recv(rank));
  return (r.send != nullptr || r.send_way == Way::unneeded) && (r.recv != nullptr || r.recv_way == Way::unneeded);
}

// Cuts the call into pieces, by a pure function of the call and of all notes: every rank gives a piece the same number.
// A part is a range that goes as a whole from the same ranks to the same ranks; a piece has elements of one part only.
void Direct::cut() noexcept {
  const std::uint64_t count = call_.signature.count;
  TRIBUTARY_ASSERT(count > 0 && ranks_ > 0, "a call of {} elements among {} ranks is cut", count, ranks_);
  switch (call_.signature.collective) {
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::gather:
    case Collective::scatter:
      parts_ = ranks_;
      break;
    case Collective::all_to_all:
      parts_ = std::uint64_t{ranks_} * ranks_;
      break;
    default:
      parts_ = 1;
      break;
  }
  std::size_t most = kPieceBytes;
  if (attaches_) most = std::clamp(kScratchBytes / (ranks_ + 1) / kLineBytes * kLineBytes, kLineBytes, kAttachedBytes);
  const std::uint64_t line = kLineBytes / element_;
  const std::uint64_t sharers = parts_ == 1 ? ranks_ : 1;
  const std::uint64_t rounds = divided_up(count, sharers * (most / element_));
  piece_elements_ =
      std::min<std::uint64_t>(divided_up(divided_up(count, sharers * rounds), line) * line, most / element_);
  pieces_of_part_ = divided_up(count, piece_elements_);
  pieces_ = parts_ * pieces_of_part_;
  slice_pieces_ = divided_up(pieces_, ranks_);
  first_ = end_;
  end_ += slice_pieces_;
  target_ += slice_pieces_ * ranks_;
  streams_ = count * element_ * (parts_ == 1 ? 1 : ranks_) >= kStreamBytesMin;
}

std::optional<std::uint64_t> Direct::claim(std::uint32_t slice) noexcept {
  std::atomic<std::uint64_t>& next = places_.claims(slice).next;
  std::uint64_t number = next.load(std::memory_order_relaxed);
  while (number < end_) {
    if (next.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) return number - first_;
  }
  return std::nullopt;
}

// Pairs with withdraw(): this rank sets `inside` before it looks at the failure, and a rank that ends with a failure
// looks at `inside` after it has seen the failure. So at least one of the two ranks sees what the other has written.
Result<bool> Direct::advance(Bell& bell) noexcept {
  ProgressLine& mine = places_.progress(rank_);
  std::uint32_t turns = 0;
  for (std::uint32_t step = 0; step < ranks_; ++step) {
    const std::uint32_t slice = (rank_ + step) % ranks_;
    while (turns < kPiecesPerTurn && places_.claims(slice).next.load(std::memory_order_relaxed) < end_) {
      mine.inside.store(1, std::memory_order_seq_cst);
      if (places_.header().failure.load(std::memory_order_seq_cst) != FailureState::none) {
        mine.inside.store(0, std::memory_order_release);
        return false;
      }
      if (const auto number = claim(slice)) {
        auto status = move(slice, *number);
        if (!status) {
          mine.inside.store(0, std::memory_order_release);
          return std::unexpected(status.error());
        }
        ++turns;
        bell.publish(mine.moved, ++moved_);
      }
      mine.inside.store(0, std::memory_order_release);
    }
  }
  return all_moved();
}

bool Direct::all_moved() const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t r = 0; r < ranks_; ++r) sum += places_.progress(r).moved.load(std::memory_order_seq_cst);
  return sum >= target_;
}

bool Direct::waits_for(std::uint32_t rank) const noexcept {
  return places_.progress(rank).inside.load(std::memory_order_seq_cst) != 0 && !all_moved();
}

Status Direct::move(std::uint32_t slice, std::uint64_t number) noexcept {
  const std::uint64_t ordinal = slice * slice_pieces_ + number;
  if (ordinal >= pieces_) return {};
  const std::uint64_t begin = ordinal % pieces_of_part_ * piece_elements_;
  return move_piece({.part = ordinal / pieces_of_part_,
                     .begin = begin,
                     .count = std::min(piece_elements_, call_.signature.count - begin)});
}

// Calls visit(rank, element) in the order of the ranks, where `element` is the piece's first element in that rank's
// input.
template <class Visit>
void Direct::each_input(const Piece& piece, Visit visit) const {
  const std::uint64_t count = call_.signature.count;
  const auto part = static_cast<std::uint32_t>(piece.part);
  switch (call_.signature.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
      for (std::uint32_t r = 0; r < ranks_; ++r) visit(r, piece.begin);
      return;
    case Collective::reduce_scatter:
      for (std::uint32_t r = 0; r < ranks_; ++r) visit(r, part * count + piece.begin);
      return;
    case Collective::all_gather:
    case Collective::gather:
      return visit(part, piece.begin);
    case Collective::broadcast:
      return visit(call_.signature.root, piece.begin);
    case Collective::scatter:
      return visit(call_.signature.root, part * count + piece.begin);
    case Collective::all_to_all:
      return visit(part / ranks_, part % ranks_ * count + piece.begin);
    case Collective::barrier:
      return;
  }
}

// Calls visit(rank, element) for the piece's results, except for results that are already in their place.
template <class Visit>
void Direct::each_output(const Piece& piece, Visit visit) const {
  const std::uint64_t count = call_.signature.count;
  const auto part = static_cast<std::uint32_t>(piece.part);
  const std::uint32_t root = call_.signature.root;
  switch (call_.signature.collective) {
    case Collective::all_reduce:
      for (std::uint32_t r = 0; r < ranks_; ++r) visit((rank_ + r) % ranks_, piece.begin);
      return;
    case Collective::reduce:
      return visit(root, piece.begin);
    case Collective::reduce_scatter:
      return visit(part, piece.begin);
    case Collective::all_gather:
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        if (r != part || !reached_[r].in_place) visit(r, part * count + piece.begin);
      }
      return;
    case Collective::gather:
      if (root != part || !reached_[root].in_place) visit(root, part * count + piece.begin);
      return;
    case Collective::broadcast:
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        const bool has_it = reached_[r].recv_way == Way::unneeded || (r == root && reached_[r].in_place);
        if (!has_it) visit(r, piece.begin);
      }
      return;
    case Collective::scatter:
      if (root != part || !reached_[root].in_place) visit(part, piece.begin);
      return;
    case Collective::all_to_all:
      return visit(part % ranks_, part / ranks_ * count + piece.begin);
    case Collective::barrier:
      return;
  }
}

// Copies all attached inputs of the piece at once into scratch memory, which a core's own cache holds, and all attached
// results at once out of it. Between these copies it works tile by tile, so that a combined tile is still in the first
// cache when it is copied to its places. It reads all inputs of a tile before it writes the tile's results, because a
// result may lie in an input's place.
Status Direct::move_piece(const Piece& piece) noexcept {
  const std::size_t bytes = piece.count * element_;
  const std::size_t slot = kScratchBytes / (ranks_ + 1) / kLineBytes * kLineBytes;
  alignas(64) std::array<std::byte, kTileBytes> tile;  // uninitialized on purpose
  std::array<const std::byte*, kernels::kReduceInputsMax> inputs;
  std::size_t n = 0;
  Status status;
  each_input(piece, [&](std::uint32_t r, std::uint64_t element) {
    const Reached& from = reached_[r];
    inputs[n++] = from.send + element * element_;
    if (from.send_way != Way::attach || !status) return;
    std::byte* const here = scratch_.get() + r * slot;
    const int error = attachment_.read(r, here, reinterpret_cast<std::uintptr_t>(inputs[n - 1]), bytes);
    if (error != 0) status = std::unexpected(attach_failed("read", r, error));
    inputs[n - 1] = here;
  });
  if (!status) return status;
  std::byte* const result = attaches_ ? scratch_.get() + ranks_ * slot : nullptr;
  bool attached = false;
  for (std::size_t at = 0; at < bytes; at += kTileBytes) {
    const std::size_t length = std::min(kTileBytes, bytes - at);
    std::array<const void*, kernels::kReduceInputsMax> parts;
    for (std::size_t i = 0; i < n; ++i) parts[i] = inputs[i] + at;
    const void* combined = parts[0];
    std::byte* const into = result != nullptr ? result + at : tile.data();
    if (reduces_) {
      kernels::reduce_step(call_.signature.dtype, call_.signature.op, {parts.data(), n}, into, length / element_,
                           {.divisor = ranks_});
      combined = into;
    }
    each_output(piece, [&](std::uint32_t r, std::uint64_t element) {
      const Reached& to = reached_[r];
      if (to.recv_way == Way::attach) {
        attached = true;
        return;
      }
      std::byte* const there = to.recv + element * element_ + at;
      const auto* from = static_cast<const std::byte*>(combined);
      streams_ && !to.in_place ? copy_streamed(there, from, length) : copy_plain(there, from, length);
    });
  }
  if (!attached) return status;
  each_output(piece, [&](std::uint32_t r, std::uint64_t element) {
    const Reached& to = reached_[r];
    if (to.recv_way != Way::attach || !status) return;
    const auto address = reinterpret_cast<std::uintptr_t>(to.recv) + element * element_;
    const int error = attachment_.write(r, address, result, bytes);
    if (error != 0) status = std::unexpected(attach_failed("write", r, error));
  });
  return status;
}

Error Direct::attach_failed(const char* what, std::uint32_t rank, int error) {
  if (error == ESRCH) return {Errc::peer_gone, "rank " + std::to_string(rank) + " is gone: its process has ended"};
  return {Errc::io, std::string("this rank could not ") + what + " the memory of rank " + std::to_string(rank) +
                        " by cross-memory attach: " + std::strerror(error) +
                        "; set TRIBUTARY_CMA=off to do without it"};
}

}  // namespace tributary::client::local
