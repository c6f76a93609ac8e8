#include "transport/shm/regions_told.h"

#include <algorithm>

#include "tributary/protocol/assert.h"

namespace tributary::transport {

std::optional<RegionLine> RegionsTold::name(std::span<const std::byte> payload) const noexcept {
  std::uint64_t offset = 0;
  for (std::uint32_t i = 0; i < used_; ++i) {
    const Entry& place = places_[i];
    if (place.range == nullptr || place.state != State::mapped || place.range->withdrawn()) continue;
    if (!place.range->holds(payload, offset)) continue;
    return RegionLine{.word = RegionWord::payload,
                      .place = i,
                      .generation = place.generation,
                      .offset = offset,
                      .bytes = payload.size()};
  }
  return std::nullopt;
}

bool RegionsTold::knows(std::span<const std::byte> payload) const noexcept {
  std::uint64_t offset = 0;
  return std::any_of(places_.begin(), places_.begin() + used_, [&](const Entry& place) {
    return place.range != nullptr && !place.range->withdrawn() && place.range->holds(payload, offset);
  });
}

std::optional<RegionLine> RegionsTold::tell(const LentMemory& lent, std::span<const std::byte> payload, int socket) {
  if (awaits_ || knows(payload)) return std::nullopt;
  auto range = lent.find(payload);
  if (range == nullptr) return std::nullopt;
  const auto free = std::ranges::find(places_, nullptr, &Entry::range);
  if (free == places_.end() || generation_ == UINT32_MAX || !range->pass(socket)) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(free - places_.begin());
  used_ = std::max(used_, index + 1);
  awaits_ = true;
  *free = {.range = std::move(range), .generation = ++generation_, .state = State::told};
  return RegionLine{.word = RegionWord::told,
                    .place = index,
                    .generation = free->generation,
                    .offset = free->range->file_offset(),
                    .bytes = free->range->bytes()};
}

bool RegionsTold::answered(const RegionLine& line) noexcept {
  if (!awaits_ || line.generation != generation_) return false;
  awaits_ = false;
  const auto asked = std::ranges::find(places_, line.generation, &Entry::generation);
  if (asked != places_.end()) {
    TRIBUTARY_ASSERT(asked->state == State::told, "generation {} is answered in state {}", line.generation,
                     asked->state);
    asked->state = line.word == RegionWord::mapped ? State::mapped : State::refused;
  }
  return true;
}

bool RegionsTold::any_withdrawn() const noexcept {
  return std::any_of(places_.begin(), places_.begin() + used_,
                     [](const Entry& place) { return place.range != nullptr && place.range->withdrawn(); });
}

std::optional<RegionLine> RegionsTold::take_withdrawn() noexcept {
  for (std::uint32_t i = 0; i < used_; ++i) {
    Entry& place = places_[i];
    if (place.range == nullptr || !place.range->withdrawn()) continue;
    const RegionLine line{.word = RegionWord::withdrawn, .place = i, .generation = place.generation};
    place = {};
    return line;
  }
  return std::nullopt;
}

}  // namespace tributary::transport
