#pragma once
// Room in this process that one peer may write to. It consists of cells, each for one payload with its message in
// front. The peer writes the cells in turn; a count tells it which cells it may write again. Only this peer has a right
// to the room: the room has its own registration, and the peer reaches it through a memory window of each of the
// connection's queue pairs. On devices without windows the peer uses the key of the registration, which is in a domain
// of its own.
//
// Cells are freed in the order in which they were written; a cell that is given back early waits for the cells before
// it.
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transport/verbs/memory_windows.h"
#include "transport/verbs/registrations.h"
#include "transport/verbs/wire.h"

namespace tributary::transport::verbs {

class Landing {
 public:
  /// Makes memory for `payloads` payloads; throws std::bad_alloc. Called once.
  void make(std::uint32_t cells, std::uint32_t payload_bytes);
  [[nodiscard]] bool made() const noexcept { return !memory_.bytes().empty(); }
  [[nodiscard]] bool is_open() const noexcept { return registration_ != nullptr; }
  /// Lets the peer write through `window`'s queue pair; if `work` binds the window, only when that work is done.
  /// Returns the address and the key for the writes. Called once for each queue pair.
  [[nodiscard]] Result<RemotePayload> open(Registrations& registrations, MemoryWindow& window, ibv_send_wr* work);
  /// Ends writing: from here on no device writes to the room. The memory stays for readers of its cells.
  void close() noexcept { registration_.reset(); }

  [[nodiscard]] std::uint32_t cells() const noexcept { return static_cast<std::uint32_t>(held_.size()); }
  [[nodiscard]] std::uint32_t payload_bytes() const noexcept { return payload_bytes_; }

  struct Written {
    std::uint32_t number = 0;  // number of the cell in this room
    std::uint32_t payload_bytes = 0;
  };
  /// Notes that the peer has written this many bytes to the next cell. Returns none if the cell is not the next one or
  /// was not free, or the bytes do not fit.
  [[nodiscard]] std::optional<Written> written(const CellImmediate& said, std::uint32_t bytes) noexcept;
  [[nodiscard]] std::span<const std::byte> message(std::uint32_t cell, std::uint32_t bytes) const noexcept {
    return {at(cell) + kCellMessageBytes - bytes, bytes};
  }
  [[nodiscard]] std::span<std::byte> payload(std::uint32_t cell, std::uint32_t bytes) const noexcept {
    return {at(cell) + kCellMessageBytes, bytes};
  }
  /// Gives a cell back that is no longer read.
  void free(std::uint32_t cell) noexcept;
  /// Gives back the cell with this payload. Returns false if no cell has it.
  bool free(const std::byte* payload) noexcept;
  /// The number of cells freed since the beginning, for a message or a write that is made now.
  [[nodiscard]] std::uint32_t tell_freed() noexcept { return freed_told_ = static_cast<std::uint32_t>(freed_); }
  /// True if the peer must be told of freed cells, even if there is no frame to send.
  [[nodiscard]] bool owes_word() const noexcept {
    return is_open() && static_cast<std::uint32_t>(freed_) - freed_told_ >= std::max(1U, cells() / 2);
  }

 private:
  [[nodiscard]] std::byte* at(std::uint32_t cell) const noexcept { return memory_.bytes().data() + cell * cell_bytes_; }

  MappedMemory memory_;
  RegistrationPtr registration_;
  std::size_t cell_bytes_ = 0;
  std::uint32_t payload_bytes_ = 0;
  std::vector<char> held_;     // one flag for each cell
  std::uint64_t written_ = 0;  // cells written since the beginning; modulo the number of cells: the next cell
  std::uint64_t freed_ = 0;
  std::uint32_t freed_told_ = 0;
};

/// The peer's room, into which this side may write.
class PeerLanding {
 public:
  /// Takes the room that the peer has announced on this queue pair, and its key. Returns false if the room is
  /// impossible.
  [[nodiscard]] bool open(const RemotePayload& where, std::uint32_t payload_bytes, std::uint32_t queue_pair) noexcept;
  [[nodiscard]] bool takes(std::size_t payload_bytes) const noexcept {
    return payload_bytes <= payload_bytes_ && written_ - freed_ < cells_;
  }
  /// Notes the number of cells that the peer has freed. Returns false if it is greater than the number of written
  /// cells.
  [[nodiscard]] bool freed_to(std::uint32_t count) noexcept;
  /// Restores a whole count. The peer has sent only its last bits.
  [[nodiscard]] std::uint32_t whole_count(std::uint32_t bits, std::uint32_t mask) const noexcept {
    const auto freed = static_cast<std::uint32_t>(freed_);
    return freed + ((bits - freed) & mask);
  }
  /// The queue pair for the write of the next cell; queue pairs with a key take turns.
  [[nodiscard]] std::uint32_t next_queue_pair() noexcept;
  /// Makes `work` write the next cell through that queue pair: message `number`, and the payload behind it.
  void write_next(ibv_send_wr& work, std::uint32_t queue_pair, std::uint32_t message_bytes,
                  std::uint32_t number) noexcept;

 private:
  std::uint64_t address_ = 0;
  std::array<std::optional<std::uint32_t>, kQueuePairsMax> keys_;  // keys by queue pair
  std::uint32_t last_queue_pair_ = kQueuePairsMax - 1;
  std::uint32_t cells_ = 0;
  std::uint32_t payload_bytes_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t freed_ = 0;
};

}  // namespace tributary::transport::verbs
