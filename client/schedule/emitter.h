#pragma once
// Takes whole messages from the algorithms, and emits only the pieces that belong to one round.
#include <algorithm>
#include <cstdint>

#include "client/schedule/schedule.h"

namespace tributary::schedule {

/// Cuts every message into pieces of piece_count elements, and keeps pieces [part * kPiecesPerRound, (part + 1) *
/// kPiecesPerRound). Both ends of a message give the same number of elements, so both cut it at the same places.
class Emitter {
 public:
  Emitter(Actions& out, std::uint64_t piece_count, std::uint64_t part) noexcept
      : out_(out), piece_count_(piece_count), part_(part) {}

  void send(std::uint32_t peer, const Slice& from) noexcept {
    for_each_piece(from.count,
                   [&](std::uint64_t at, std::uint64_t count) { out_.push(Send{peer, cut(from, at, count)}); });
  }
  void receive(std::uint32_t peer, const Slice& into) noexcept {
    for_each_piece(into.count, [&](std::uint64_t at, std::uint64_t count) {
      out_.push(Receive{.peer = peer, .into = cut(into, at, count)});
    });
  }
  /// Emits a receive that reduces. `how` has all members of the receive except its slices.
  void receive_reduce(const Receive& how, const Slice& into, const Slice& operand) noexcept {
    for_each_piece(into.count, [&](std::uint64_t at, std::uint64_t count) {
      Receive piece = how;
      piece.into = cut(into, at, count);
      piece.operand = cut(operand, at, count);
      out_.push(piece);
    });
  }
  /// Copies piece by piece, in the same rounds as a message of the same size.
  void copy_in_pieces(const Slice& from, const Slice& into) noexcept {
    for_each_piece(from.count, [&](std::uint64_t at, std::uint64_t count) {
      out_.push(LocalCopy{cut(from, at, count), cut(into, at, count)});
    });
  }
  /// Copies the whole slice, in the step's first round.
  void copy(const Slice& from, const Slice& into) noexcept {
    if (part_ == 0) out_.push(LocalCopy{from, into});
  }
  void reduce(const LocalReduce& action) noexcept {
    if (part_ == 0) out_.push(action);
  }
  /// Emits a message without elements: its arrival is a signal.
  void send_signal(std::uint32_t peer) noexcept { out_.push(Send{.peer = peer, .from = {Buffer::scratch, 0, 0}}); }
  void receive_signal(std::uint32_t peer) noexcept {
    out_.push(Receive{.peer = peer, .into = {Buffer::scratch, 0, 0}});
  }

 private:
  [[nodiscard]] static Slice cut(const Slice& whole, std::uint64_t at, std::uint64_t count) noexcept {
    return {whole.buffer, whole.offset + at, count};
  }
  template <class Use>
  void for_each_piece(std::uint64_t total, Use use) const noexcept {
    const std::uint64_t span = piece_count_ * kPiecesPerRound;
    const std::uint64_t end = std::min(total, (part_ + 1) * span);
    for (std::uint64_t at = part_ * span; at < end; at += piece_count_) use(at, std::min(piece_count_, end - at));
  }

  Actions& out_;
  std::uint64_t piece_count_;
  std::uint64_t part_;
};

}  // namespace tributary::schedule
