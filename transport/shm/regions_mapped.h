#pragma once
// The other side's memory, as far as it is mapped here: for reading alone, and within bounds that the other side cannot
// move. It is believed in nothing: the file must be sealed against shrinking, places, lengths and offsets are checked,
// and what is read there is data, never a number that anything depends on.
#include <array>
#include <memory>
#include <span>

#include "transport/shm/region_line.h"
#include "tributary/transport/shared_memory.h"

namespace tributary::transport {

class RegionsMapped {
 public:
  using Mapping = std::shared_ptr<const ForeignMapping>;
  struct Bytes {
    std::span<const std::byte> there;
    Mapping keeps;  // nullptr: there is no such place, or it is too short
  };

  /// False: it is not what it should be, or beyond what one connection (`bytes_max`), or this process, maps.
  [[nodiscard]] bool map(const RegionLine& told, const OwnedDescriptor& file, std::uint64_t bytes_max);
  /// Memory in which something is still read stays mapped until nothing is.
  void drop(const RegionLine& withdrawn) noexcept;
  [[nodiscard]] Bytes find(const RegionLine& payload) const noexcept;
  /// The bytes of all places.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t count() const noexcept;

 private:
  struct Place {
    std::uint32_t generation = 0;  // 0: free
    Mapping mapping;
  };
  void clear(Place& place) noexcept;

  std::array<Place, kRegionPlaces> places_;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_ever_ = 0;
};

}  // namespace tributary::transport
