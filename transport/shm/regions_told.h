#pragma once
// A connection's account of this process's memory: the ranges it has told its other side, and the answers.
#include <array>
#include <optional>

#include "transport/shm/lent_memory.h"
#include "transport/shm/region_line.h"

namespace tributary::transport {

class RegionsTold {
 public:
  /// The line that names the payload instead of bringing it; nullopt: the other side has it not mapped.
  [[nodiscard]] std::optional<RegionLine> name(std::span<const std::byte> payload) const noexcept;
  /// Tells of the memory that holds the payload, if there is some to tell and nothing that was told waits for its
  /// answer: the descriptor goes over `socket`, the line is for the ring.
  [[nodiscard]] std::optional<RegionLine> tell(const LentMemory& lent, std::span<const std::byte> payload, int socket);
  /// False: nothing was asked that this could answer.
  [[nodiscard]] bool answered(const RegionLine& line) noexcept;
  /// A line for memory that was taken back since; nullopt: there is none.
  [[nodiscard]] std::optional<RegionLine> take_withdrawn() noexcept;
  [[nodiscard]] bool any_withdrawn() const noexcept;

 private:
  enum class State : std::uint8_t { told, mapped, refused };
  struct Place {
    std::shared_ptr<const LentRange> range;  // nullptr: free
    std::uint32_t generation = 0;
    State state = State::told;
  };
  [[nodiscard]] bool knows(std::span<const std::byte> payload) const noexcept;

  std::array<Place, kRegionPlaces> places_;
  std::uint32_t used_ = 0;        // places below have been in use
  std::uint32_t generation_ = 0;  // the last that was given
  bool awaits_ = false;           // an answer
};

}  // namespace tributary::transport
