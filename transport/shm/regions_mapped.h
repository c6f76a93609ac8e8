#pragma once
// The part of the other side's memory that is mapped here, for reading only, and within bounds that the other side
// cannot move. This process does not trust the other side: the file must be sealed against shrinking; places, lengths
// and offsets are checked; and the bytes are only summed, never used as a length or an address.
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
    Mapping keeps;  // Returns nullptr if there is no such place, or if it is too short
  };

  /// Returns false if the file is not sealed, or the bounds of one connection (`bytes_max`) or of this process are
  /// reached.
  [[nodiscard]] bool map(const RegionLine& told, const OwnedDescriptor& file, std::uint64_t bytes_max);
  /// Gives up a place. Its memory stays mapped while a reader still uses it.
  void drop(const RegionLine& withdrawn) noexcept;
  [[nodiscard]] Bytes find(const RegionLine& payload) const noexcept;
  /// The number of mapped bytes of all places.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::size_t count() const noexcept;

 private:
  struct Entry {
    std::uint32_t generation = 0;  // 0: free
    Mapping mapping;
  };
  void clear(Entry& place) noexcept;

  std::array<Entry, kRegionPlaces> places_;
  std::uint64_t bytes_ = 0;
  std::uint64_t bytes_ever_ = 0;
};

}  // namespace tributary::transport
