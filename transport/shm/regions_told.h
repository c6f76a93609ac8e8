#pragma once
// The ranges of this process's memory that a connection has announced to the other side, and the answers.
#include <array>
#include <optional>

#include "transport/shm/lent_memory.h"
#include "transport/shm/region_line.h"

namespace tributary::transport {

class RegionsTold {
 public:
  /// Makes the line that names the payload, so that no copy is needed; nullopt: the other side has not mapped the
  /// payload's range.
  [[nodiscard]] std::optional<RegionLine> name(std::span<const std::byte> payload) const noexcept;
  /// Tells the other side about the range that holds the payload. It does nothing if there is no such range, or this
  /// side still waits for an answer. The descriptor goes over `socket`; the returned line is for the ring.
  [[nodiscard]] std::optional<RegionLine> tell(const LentMemory& lent, std::span<const std::byte> payload, int socket);
  /// Takes an answer. Returns false if the line answers no question of this side.
  [[nodiscard]] bool answered(const RegionLine& line) noexcept;
  /// Makes a line for a range that its owner has taken back since; nullopt: there is no such range.
  [[nodiscard]] std::optional<RegionLine> take_withdrawn() noexcept;
  [[nodiscard]] bool any_withdrawn() const noexcept;

 private:
  enum class State : std::uint8_t { told, mapped, refused };
  struct Entry {
    std::shared_ptr<const LentRange> range;  // nullptr: free
    std::uint32_t generation = 0;
    State state = State::told;
  };
  [[nodiscard]] bool knows(std::span<const std::byte> payload) const noexcept;

  std::array<Entry, kRegionPlaces> places_;
  std::uint32_t used_ = 0;        // places from this number on were never in use
  std::uint32_t generation_ = 0;  // the last generation that was used
  bool awaits_ = false;           // this side waits for an answer
};

}  // namespace tributary::transport
