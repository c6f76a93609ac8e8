#include "transport/verbs/places.h"

#include <algorithm>
#include <cstring>

#include "tributary/protocol/assert.h"

namespace tributary::transport::verbs {
namespace {

bool same(const FrameHeader& a, const FrameHeader& b) noexcept {
  return std::memcmp(&a, &b, sizeof a) == 0;  // a header has no gaps
}
static_assert(std::has_unique_object_representations_v<FrameHeader>);

}  // namespace

void Places::open(ibv_pd& domain, std::uint32_t count, bool windows, VerbsStatistics& statistics) {
  TRIBUTARY_ASSERT(places_.empty() && count <= kPlacesMax, "{} places are opened beside {}", count, places_.size());
  windows_ = windows;
  places_.resize(count);
  for (Place& place : places_) place.window.open(domain, statistics);
  for (std::uint32_t number = count; number > 0; --number) free_.push_back(number - 1);
}

void Places::close() noexcept {
  places_.clear();
  free_.clear();
  untold_.clear();
  queues_ = {};
  told_ = 0;
}

bool Places::expect(const FrameHeader& header, std::span<std::byte> memory) {
  if (free_.empty()) return false;
  const std::uint32_t number = free_.back();
  free_.pop_back();
  Place& place = at(number);
  TRIBUTARY_ASSERT(place.state == State::free, "a frame is expected at place {} in state {}", number, place.state);
  place.header = header;
  place.memory = memory;
  place.state = State::untold;
  place.withdrawn = false;
  untold_.push_back(number);
  return true;
}

Result<Places::Told> Places::tell(Registrations& registrations, std::uint32_t queue_pair, ibv_send_wr* work) {
  TRIBUTARY_ASSERT(has_untold(), "a place is announced, and none of {} waits for this", places_.size());
  const std::uint32_t number = untold_.front();
  Place& place = at(number);
  TRIBUTARY_ASSERT(place.state == State::untold && queue_pair < queues_.size(), "place {} is announced in state {}",
                   number, place.state);
  auto registration = registrations.acquire(place.memory, Access::target);
  if (!registration) return std::unexpected(registration.error());
  place.registration = std::move(*registration);
  Told told{.header = place.header,
            .where = {.address = reinterpret_cast<std::uintptr_t>(place.memory.data()),
                      .key = place.registration->remote_key(),
                      .number = number}};
  if (work != nullptr) {
    const auto key = place.window.bind(place.memory, *place.registration, IBV_ACCESS_REMOTE_WRITE, *work);
    if (!key) return std::unexpected(key.error());
    told.where.key = *key;
  }
  untold_.pop_front();
  place.state = State::told;
  place.queue_pair = queue_pair;
  ++told_;
  return told;
}

bool Places::written(std::uint32_t number, std::uint32_t queue_pair, std::uint32_t bytes) {
  if (number >= places_.size() || at(number).state != State::told) return false;
  if (at(number).memory.size() != bytes || at(number).queue_pair != queue_pair) return false;
  end_right(number);
  return true;
}

std::optional<std::uint32_t> Places::withdraw(const FrameHeader& header) {
  if (told_ == 0 && untold_.empty()) return std::nullopt;
  for (std::uint32_t number = 0; number < places_.size(); ++number) {
    Place& place = at(number);
    if ((place.state != State::told && place.state != State::untold) || !same(place.header, header)) continue;
    place.withdrawn = true;
    if (place.state == State::told) {
      end_right(number);
    } else {
      std::erase(untold_, number);
      revoked(number);
    }
    return number;
  }
  return std::nullopt;
}

/// Without windows the right is a registration only for this place, so the right ends at once.
void Places::end_right(std::uint32_t number) {
  TRIBUTARY_ASSERT(at(number).state == State::told && told_ > 0, "the right to place {} ends in state {}", number,
                   at(number).state);
  --told_;
  if (!windows_) return revoked(number);
  at(number).state = State::revoking;
  queues_[at(number).queue_pair].to_revoke.push_back(number);
}

void Places::revoked(std::uint32_t number) {
  at(number).registration.reset();
  at(number).state = State::revoked;
  if (at(number).withdrawn) free(number);
}

void Places::revoke(std::uint32_t queue_pair, ibv_send_wr& work, std::uint32_t position) {
  Queue& queue = queues_[queue_pair];
  TRIBUTARY_ASSERT(!queue.to_revoke.empty(), "a right is revoked on queue pair {}, which has none", queue_pair);
  const std::uint32_t number = queue.to_revoke.front();
  queue.to_revoke.pop_front();
  TRIBUTARY_ASSERT(at(number).state == State::revoking, "place {} is revoked in state {}", number, at(number).state);
  at(number).window.revoke(work);
  at(number).revoked_at = position;
  queue.revoking.push_back(number);
}

bool Places::done_to(std::uint32_t queue_pair, std::uint32_t position) {
  auto& revoking = queues_[queue_pair].revoking;
  bool some = false;
  while (!revoking.empty() && static_cast<std::int32_t>(position - at(revoking.front()).revoked_at) >= 0) {
    revoked(revoking.front());
    revoking.pop_front();
    some = true;
  }
  return some;
}

void Places::free(std::uint32_t number) {
  TRIBUTARY_ASSERT(at(number).state == State::revoked, "place {} is freed in state {}", number, at(number).state);
  at(number).state = State::free;
  free_.push_back(number);
}

bool PeerPlaces::add(const Place& place) {
  if (place.where.number >= kPlacesMax) return false;
  // If a number comes a second time, its earlier place was withdrawn, because the frame has come in another way.
  std::erase_if(places_, [&](const Place& one) { return one.where.number == place.where.number; });
  places_.push_back(place);
  return true;
}

const PeerPlaces::Place* PeerPlaces::find(const FrameHeader& header) const noexcept {
  const auto found = std::ranges::find_if(places_, [&](const Place& place) { return same(place.header, header); });
  return found == places_.end() ? nullptr : &*found;
}

void PeerPlaces::taken(const Place* place) {
  const auto found = std::ranges::find_if(places_, [&](const Place& one) { return &one == place; });
  TRIBUTARY_ASSERT(found != places_.end(), "a place is used that is not among the {} announced places", places_.size());
  places_.erase(found);
}

}  // namespace tributary::transport::verbs
