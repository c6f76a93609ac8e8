#include "transport/shm/regions_mapped.h"

#include <algorithm>
#include <atomic>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

// The most mappings of all connections. A process may have some 65,000 mappings, and needs most of them for other
// purposes.
constexpr std::uint32_t kMappingsMax = 8192;
// When this process reads a hole in the file, the hole gets pages, which count as this process's and stay as long as
// the other side keeps the file. So the bytes that one connection may map in all its life are bounded, too. A program
// that registers memory again for each call reaches this bound, and its payloads are copied from then on.
constexpr std::uint64_t kTurnsOver = 64;

std::atomic<std::uint32_t> mappings{0};

/// A mapping that counts towards kMappingsMax.
struct Counted {
  explicit Counted(ForeignMapping&& taken) noexcept : mapping(std::move(taken)) {}
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() {
    const std::uint32_t before = mappings.fetch_sub(1, std::memory_order_relaxed);
    TRIBUTARY_ASSERT(before > 0, "a mapping ends, and none is counted");
  }
  const ForeignMapping mapping;
};

}  // namespace

bool RegionsMapped::map(const RegionLine& told, const OwnedDescriptor& file, std::uint64_t bytes_max) {
  if (told.place >= kRegionPlaces || told.generation == 0 || !file.is_open()) return false;
  Entry& place = places_[told.place];
  clear(place);
  if (told.bytes > bytes_max - std::min(bytes_max, bytes_)) return false;
  if (told.bytes > kTurnsOver * bytes_max - std::min(kTurnsOver * bytes_max, bytes_ever_)) return false;
  if (mappings.fetch_add(1, std::memory_order_relaxed) >= kMappingsMax) {
    mappings.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  auto mapping = ForeignMapping::map(file, told.offset, told.bytes, ForeignMapping::Access::read, false);
  if (!mapping) {
    mappings.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  const auto counted = std::make_shared<const Counted>(std::move(*mapping));
  place = {.generation = told.generation, .mapping = Mapping(counted, &counted->mapping)};
  bytes_ += told.bytes;
  bytes_ever_ += told.bytes;
  TRIBUTARY_ASSERT(bytes_ <= bytes_max, "{} bytes are mapped, of at most {}", bytes_, bytes_max);
  return true;
}

void RegionsMapped::clear(Entry& place) noexcept {
  if (place.mapping != nullptr) {
    const std::size_t bytes = place.mapping->bytes().size();
    TRIBUTARY_ASSERT(bytes <= bytes_, "a place of {} bytes ends, and all have {}", bytes, bytes_);
    bytes_ -= bytes;
  }
  place = {};
}

void RegionsMapped::drop(const RegionLine& withdrawn) noexcept {
  if (withdrawn.place >= kRegionPlaces) return;
  Entry& place = places_[withdrawn.place];
  if (place.generation == withdrawn.generation) clear(place);
}

RegionsMapped::Bytes RegionsMapped::find(const RegionLine& payload) const noexcept {
  if (payload.place >= kRegionPlaces) return {};
  const Entry& place = places_[payload.place];
  if (place.generation == 0 || place.generation != payload.generation) return {};
  TRIBUTARY_ASSERT(place.mapping != nullptr, "generation {} has a place and no mapping", place.generation);
  const std::span<const std::byte> whole = place.mapping->bytes();
  if (payload.offset > whole.size() || payload.bytes > whole.size() - payload.offset) return {};
  return {.there = whole.subspan(payload.offset, payload.bytes), .keeps = place.mapping};
}

std::size_t RegionsMapped::count() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(places_, [](const Entry& p) { return p.generation != 0; }));
}

}  // namespace tributary::transport
