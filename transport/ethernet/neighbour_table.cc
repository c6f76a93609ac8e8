#include "transport/ethernet/neighbour_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tributary::transport::ethernet {
namespace {

enum class State : std::uint8_t { none, incomplete, reachable, stale, probing };
constexpr std::uint64_t kUsable = 1ULL << 63U;

std::pair<std::uint64_t, std::uint64_t> words_of(const IpAddress& ip) noexcept {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::memcpy(&low, ip.data(), 8);
  std::memcpy(&high, ip.data() + 8, 8);
  return {low, high};
}

std::uint64_t word_of(const MacAddress& mac) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, mac.bytes.data(), mac.bytes.size());
  return word;
}

std::uint64_t mix(std::uint64_t x) noexcept {  // the finalizer of MurmurHash3
  x = (x ^ (x >> 33U)) * 0xFF51AFD7ED558CCDULL;
  x = (x ^ (x >> 33U)) * 0xC4CEB9FE1A85EC53ULL;
  return x ^ (x >> 33U);
}

}  // namespace

/// One neighbour. Readers read the first cache line without a lock; the mutex guards the other members.
struct alignas(64) NeighbourTable::Place {
  std::atomic<std::uint32_t> sequence{0};  // odd while a writer changes the three words
  mutable std::atomic<bool> used{false};
  std::atomic<std::uint64_t> ip_low{0};
  std::atomic<std::uint64_t> ip_high{0};
  std::atomic<std::uint64_t> mac{0};  // MAC address, with the bit kUsable

  alignas(64) State state = State::none;
  bool ours = false;  // this host has asked for the neighbour or sent to it
  std::uint32_t probes = 0;
  IpAddress ip{};
  MacAddress at;
  TimePoint next;       // reachable: time when this state ends; incomplete, probing: time of the next question
  TimePoint last_used;  // time of the last use that due() has seen
};

NeighbourTable::NeighbourTable(const NeighbourSettings& settings)
    : settings_(settings),
      places_count_(std::bit_ceil(std::size_t{std::max(1U, settings.buckets)}) * kWays),
      places_(std::make_unique<Place[]>(places_count_)) {}
NeighbourTable::~NeighbourTable() = default;

std::span<NeighbourTable::Place> NeighbourTable::bucket_of(const IpAddress& ip) const noexcept {
  const auto [low, high] = words_of(ip);
  const std::uint64_t hash = mix(high ^ mix(low ^ settings_.hash_seed));
  return {&places_[(hash & (places_count_ / kWays - 1)) * kWays], kWays};
}

// A reader that sees a word of a later write also sees that write's odd number: the words are stored with release after
// the number, and loaded with acquire before the number is read again.
bool NeighbourTable::find(const IpAddress& ip, MacAddress& mac) const noexcept {
  const auto [low, high] = words_of(ip);
  for (const Place& place : bucket_of(ip)) {
    const std::uint32_t before = place.sequence.load(std::memory_order_acquire);
    if (place.ip_low.load(std::memory_order_acquire) != low || place.ip_high.load(std::memory_order_acquire) != high) {
      continue;
    }
    const std::uint64_t word = place.mac.load(std::memory_order_acquire);
    if (before % 2 != 0 || place.sequence.load(std::memory_order_relaxed) != before) return false;  // being written
    if ((word & kUsable) == 0) return false;
    std::memcpy(mac.bytes.data(), &word, mac.bytes.size());
    if (!place.used.load(std::memory_order_relaxed)) place.used.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void NeighbourTable::publish(Place& place, const IpAddress& ip, const MacAddress& mac, bool usable) noexcept {
  place.ip = ip;
  place.at = mac;
  const auto [low, high] = words_of(ip);
  const std::uint32_t before = place.sequence.load(std::memory_order_relaxed);
  place.sequence.store(before + 1, std::memory_order_relaxed);
  place.ip_low.store(low, std::memory_order_release);
  place.ip_high.store(high, std::memory_order_release);
  place.mac.store(word_of(mac) | (usable ? kUsable : 0), std::memory_order_release);
  place.sequence.store(before + 2, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
}

void NeighbourTable::forget(Place& place) noexcept {
  publish(place, {}, {}, false);
  place.state = State::none;
  place.ours = false;
  place.used.store(false, std::memory_order_relaxed);
  --counts_.entries;
}

NeighbourTable::Place* NeighbourTable::place_of(const IpAddress& ip) const noexcept {
  for (Place& place : bucket_of(ip)) {
    if (place.state != State::none && place.ip == ip) return &place;
  }
  return nullptr;
}

/// Returns a free place, else the place of a neighbour that this host does not use, or used longest ago.
NeighbourTable::Place* NeighbourTable::place_for_ours(const IpAddress& ip) noexcept {
  const std::span<Place> bucket = bucket_of(ip);
  const auto free = std::ranges::find(bucket, State::none, &Place::state);
  if (free == bucket.end()) {
    forget(*std::ranges::min_element(bucket, {},
                                     [](const Place& place) { return std::pair(place.ours, place.last_used); }));
    return place_for_ours(ip);
  }
  ++counts_.entries;
  return &*free;
}

/// Returns a free place, else the place of the neighbour that came first among the neighbours that this host does not
/// use.
NeighbourTable::Place* NeighbourTable::place_for_stranger(const IpAddress& ip) noexcept {
  const std::span<Place> bucket = bucket_of(ip);
  const auto is_ours = [](const Place& place) {
    return place.state != State::none && (place.ours || place.used.load(std::memory_order_relaxed));
  };
  if (std::ranges::all_of(bucket, is_ours)) {
    ++counts_.refused_full;
    return nullptr;
  }
  const auto rank = [&](const Place& place) {
    return std::tuple(is_ours(place), place.state != State::none, place.last_used);
  };
  Place& chosen = *std::ranges::min_element(bucket, {}, rank);
  if (chosen.state != State::none) forget(chosen);
  ++counts_.entries;
  return &chosen;
}

void NeighbourTable::believe(Place& place, const IpAddress& ip, const MacAddress& mac, bool confirmed,
                             TimePoint now) noexcept {
  const bool known = place.state != State::none && place.state != State::incomplete;
  if (known && place.at != mac) ++counts_.moved;
  if (!known) ++counts_.resolved;
  if (!known || place.at != mac) publish(place, ip, mac, true);
  if (place.state == State::none) place.last_used = now;
  place.state = confirmed ? State::reachable : State::stale;
  place.next = now + settings_.reachable;
  place.probes = 0;
}

void NeighbourTable::want(const IpAddress& ip, TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (place_of(ip) != nullptr) return;
  Place& place = *place_for_ours(ip);
  place.state = State::incomplete;
  place.ours = true;
  place.probes = 0;
  place.next = now;
  place.last_used = now;
  publish(place, ip, {}, false);
}

void NeighbourTable::heard(const IpAddress& ip, const MacAddress& mac, NeighbourWord word, TimePoint now) {
  const std::lock_guard lock(mutex_);
  Place* place = place_of(ip);
  if (place == nullptr && word.asks_for_us && !word.is_answer) place = place_for_stranger(ip);
  if (place == nullptr) return;
  const bool known = place->state != State::none && place->state != State::incomplete;
  const bool same = known && place->at == mac;
  if (known && !same && !word.may_replace) return;
  // A confirmed entry whose address does not change keeps its state and times.
  if (!word.is_answer && same && place->state != State::stale) return;
  believe(*place, ip, mac, word.is_answer, now);
}

/// Moves one neighbour on to the time `now`. Returns true if the question `probe` must be asked.
bool NeighbourTable::step(Place& place, TimePoint now, NeighbourProbe& probe) noexcept {
  if (place.used.exchange(false, std::memory_order_relaxed)) {
    place.last_used = now;
    place.ours = true;
    if (place.state == State::stale) {
      place.state = State::probing;
      place.probes = 0;
      place.next = now;
    }
  }
  if (place.state == State::reachable && now >= place.next) place.state = State::stale;
  if (place.state == State::stale && now - place.last_used > settings_.unused) forget(place);
  if ((place.state != State::incomplete && place.state != State::probing) || now < place.next) return false;
  if (place.probes == settings_.probes_max) {
    ++counts_.failed;
    forget(place);
    return false;
  }
  ++place.probes;
  place.next = now + settings_.probe_interval;
  probe.ip = place.ip;
  probe.at = place.state == State::probing ? std::optional(place.at) : std::nullopt;
  return true;
}

std::size_t NeighbourTable::due(TimePoint now, std::span<NeighbourProbe> probes) {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (std::size_t i = 0; i < places_count_ && count < probes.size(); ++i) {
    Place& place = places_[cursor_];
    cursor_ = (cursor_ + 1) % places_count_;
    if (place.state != State::none && step(place, now, probes[count])) ++count;
  }
  return count;
}

NeighbourCounts NeighbourTable::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace tributary::transport::ethernet
