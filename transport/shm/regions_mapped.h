#pragma once
// The part of the other side's memory that is mapped here, for reading only, and within bounds that the other side
// cannot move. This process believes nothing that it says: the file must be sealed against shrinking; places, lengths
// and offsets are checked; and the bytes there are data, never a number that anything depends on.
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

  /// False: the file is unfit, or the bounds of one connection (`bytes_max`) or of this process are reached.
  [[nodiscard]] bool map(const RegionLine& told, const OwnedDescriptor& file, std::uint64_t bytes_max);
  /// Gives up a place. Memory stays mapped while somebody still reads it.
  void drop(const RegionLine& withdrawn) noexcept;
  [[nodiscard]] Bytes find(const RegionLine& payload) const noexcept;
  /// The mapped bytes of all places.
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
