#pragma once
// Memory of a leader for each piece that it has under way.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tributary::client::hosts {

inline constexpr std::uint64_t kAheadMax = 8;  // pieces that a leader has under way at once

class PieceMemory {
 public:
  /// Returns the memory of this piece, of at least so many bytes. It serves the piece of this number + kAheadMax next.
  [[nodiscard]] std::byte* of(std::uint64_t number, std::size_t bytes) {
    Room& room = rooms_[number % kAheadMax];
    if (room.bytes < bytes) {
      room.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
      room.bytes = bytes;
    }
    return room.memory.get();
  }

 private:
  struct Room {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
  };
  std::array<Room, kAheadMax> rooms_;
};

}  // namespace tributary::client::hosts
