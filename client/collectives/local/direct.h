#pragma once
// Collectives of long vectors without chunks: a rank reads its part of all ranks' inputs in place, and writes the
// results to their places on every rank. So every input is read once, and every result is written once.
//
// note      each rank writes where its buffers are: in a region that all ranks mapped, or at an address for attach
//   agree     once all notes are there: the call is direct if all ranks' buffers can be reached; else it uses chunks
//   claim     a rank takes a piece: first of its own slice, which stays in its core's cache, then of other slices
//   move      it combines the inputs in the order of the ranks, and copies the results to their places
//   count     the moved pieces: the call is over when all pieces have moved
//
// Any running rank works on any piece. So a call ends even if some ranks get no core.
//
// No rank touches a buffer after the end of its call. A call succeeds after the last piece. After a failure, a rank's
// call ends when every other rank has left its buffers, which takes a piece's time, or has ended (withdraw()).
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/collectives/local/attach.h"
#include "client/collectives/local/movement.h"
#include "client/collectives/local/regions.h"
#include "client/collectives/local/waiting.h"

namespace tributary::client::local {

/// The way in which the other ranks reach a buffer.
enum class Way : std::uint8_t {
  none,      // the other ranks cannot reach the buffer
  unneeded,  // the call neither reads nor writes the buffer
  region,
  attach,
};

/// A buffer, as its note describes it.
struct Buffer {
  std::uint64_t at = 0;  // offset in the region, or address for attach
  std::uint32_t generation = 0;
  std::uint16_t index = 0;
  Way way = Way::none;
  std::uint8_t in_place = 0;
};
struct Reach {
  Buffer send, recv;
};
static_assert(sizeof(Reach) <= sizeof(Note::few));

class Direct {
 public:
  Direct(std::shared_ptr<Arena> arena, const Places& places, std::uint32_t rank, std::uint32_t ranks, Inboxes inboxes,
         std::span<const FileDescriptor> processes, const AttachRule& attach);
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;

  [[nodiscard]] const std::shared_ptr<Regions>& regions() const noexcept { return regions_; }
  [[nodiscard]] const Attachment& attachment() const noexcept { return attachment_; }

  /// Fills the call's note. Returns false if some other rank cannot reach this rank's buffers; the call is then not
  /// direct.
  [[nodiscard]] bool offer(const Call& call, const Movement& movement, std::byte* note) noexcept;
  /// Call it when all notes of the operation are there. Returns whether the call is direct, because every rank's
  /// note allows it; the answer is the same on every rank. An error says that a note is malformed.
  [[nodiscard]] Result<bool> agree(std::uint64_t sequence) noexcept;
  /// Moves some pieces. Returns true if the ranks together have moved all pieces of the call. The caller must report an
  /// error to the other ranks.
  [[nodiscard]] Result<bool> advance(Bell& bell) noexcept;
  /// Returns the number of pieces that this rank has moved.
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }
  /// True if not all pieces have moved, and `rank` may be inside this call's buffers.
  [[nodiscard]] bool waits_for(std::uint32_t rank) const noexcept;

 private:
  /// Another rank's buffers as this rank reaches them. With `attach`, addresses belong to the other process.
  struct Reached {
    std::byte* send = nullptr;
    std::byte* recv = nullptr;
    Way send_way = Way::none, recv_way = Way::none;
    bool in_place = false;
  };
  /// A range of elements that are combined (or copied) from the same ranks to the same ranks.
  struct Piece {
    std::uint64_t part, begin, count;
  };
  static constexpr std::size_t kTileBytes = 8192;                        // fits in the L1 cache with its inputs
  static constexpr std::size_t kPieceBytes = std::size_t{64} << 10;      // a piece of mapped memory
  static constexpr std::size_t kAttachedBytes = std::size_t{256} << 10;  // the longest piece of attached memory
  static constexpr std::size_t kScratchBytes = std::size_t{1} << 20;
  static constexpr std::uint32_t kPiecesPerTurn = 16;

  [[nodiscard]] Buffer place_of(const std::byte* memory, std::size_t bytes) noexcept;
  [[nodiscard]] bool resolve(std::uint32_t rank, const Reach& reach) noexcept;
  void cut() noexcept;
  [[nodiscard]] std::size_t bytes_of_send(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::size_t bytes_of_recv(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::optional<std::uint64_t> claim(std::uint32_t slice) noexcept;
  [[nodiscard]] Status move(std::uint32_t slice, std::uint64_t number) noexcept;
  [[nodiscard]] Status move_piece(const Piece& piece) noexcept;
  template <class Visit>
  void each_input(const Piece& piece, Visit visit) const;
  template <class Visit>
  void each_output(const Piece& piece, Visit visit) const;
  [[nodiscard]] bool all_moved() const noexcept;
  [[nodiscard]] static Error attach_failed(const char* what, std::uint32_t rank, int error);

  const Places places_;
  const std::uint32_t rank_, ranks_;
  const std::shared_ptr<Regions> regions_;
  Attachment attachment_;
  std::unique_ptr<std::byte[]> scratch_;  // a slot for each rank and one for the result; made at first use
  std::vector<Reached> reached_;

  // State of the present call.
  Call call_;
  std::size_t element_ = 1;
  bool reduces_ = false, streams_ = false, attaches_ = false;
  std::uint64_t parts_ = 1, piece_elements_ = 1, pieces_of_part_ = 1, pieces_ = 0;
  std::uint64_t slice_pieces_ = 0;  // pieces of each rank's slice; the last slice may have empty pieces
  std::uint64_t first_ = 0;         // claim number of this call's first piece, in each slice
  std::uint64_t end_ = 0;           // claim number of the next call's first piece
  // The call is over when all ranks together have moved this many pieces since the group began.
  std::uint64_t target_ = 0;
  std::uint64_t moved_ = 0;  // pieces that this rank has moved
};

}  // namespace tributary::client::local
