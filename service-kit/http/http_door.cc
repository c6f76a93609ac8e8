#include "service-kit/http/http_door.h"

#include <vector>

namespace tributary::service {

// Makes rooms without a limit of time: each stream has its own deadline, which ends a silent connection.
HttpDoor::HttpDoor(std::size_t places, std::uint64_t stranger_bytes_max, std::uint64_t handshakes_per_second_max)
    : stranger_bytes_max_(stranger_bytes_max),
      strangers_(places, WaitingRoom::kNoLimit),
      known_(places, WaitingRoom::kNoLimit),
      handshakes_(handshakes_per_second_max) {}

/// Removes a connection. The caller holds the lock, and releases the returned reference after the lock: this may end
/// the connection.
std::shared_ptr<HttpConnection> HttpDoor::take_out(Id id) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return nullptr;
  (entry->second.proved ? known_ : strangers_).leave(id);
  auto connection = entry->second.connection.lock();
  entries_.erase(entry);
  return connection;
}

/// Removes the connection whose place a newcomer needs, if the room is full. The caller holds the lock.
std::shared_ptr<HttpConnection> HttpDoor::make_room_in(WaitingRoom& room) {
  const auto oldest = room.makes_room();
  return oldest ? take_out(*oldest) : nullptr;
}

HttpDoor::Id HttpDoor::enter(const std::shared_ptr<HttpConnection>& connection, Source from) {
  std::shared_ptr<HttpConnection> displaced;
  Id id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closing()) return 0;
    ++counts_.accepted;
    const std::size_t before = entries_.size();
    displaced = make_room_in(strangers_);
    if (entries_.size() < before) ++counts_.displaced;
    id = next_++;
    strangers_.enter(id, from, 0);
    entries_.emplace(id, Entry{connection, from});
  }
  if (displaced) displaced->make_room();
  return id;
}

void HttpDoor::proved(Id id) {
  std::shared_ptr<HttpConnection> displaced;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || entry->second.proved) return;
    displaced = make_room_in(known_);
    strangers_.leave(id);
    known_.enter(id, entry->second.from, 0);
    entry->second.proved = true;
  }
  if (displaced) displaced->make_room();
}

void HttpDoor::leave(Id id) {
  std::shared_ptr<HttpConnection> kept;  // destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  kept = take_out(id);
}

void HttpDoor::make_room() {
  std::shared_ptr<HttpConnection> displaced;
  {
    const std::lock_guard lock(mutex_);
    const auto oldest = strangers_.oldest();
    if (!oldest) return;
    ++counts_.displaced;
    displaced = take_out(*oldest);
  }
  if (displaced) displaced->make_room();
}

void HttpDoor::close_all() {
  std::vector<std::shared_ptr<HttpConnection>> all;
  {
    const std::lock_guard lock(mutex_);
    closing_.store(true, std::memory_order_relaxed);
    all.reserve(entries_.size());
    // Skip connections whose weak pointer has expired: their destructors wait for this lock in leave().
    for (const auto& [id, entry] : entries_) all.push_back(entry.connection.lock());
  }
  for (const auto& connection : all) {
    if (connection) connection->close_when_idle();
  }
}

bool HttpDoor::take(std::uint64_t bytes) noexcept {
  const std::uint64_t before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (before == 0 || before + bytes <= stranger_bytes_max_) return true;  // a single answer may be longer
  give_back(bytes);
  busy_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

bool HttpDoor::may_shake_hands(Source from) {
  return handshakes_.take(std::to_string(from.network), std::chrono::steady_clock::now());
}

bool HttpDoor::count_failed_handshake() {
  failed_.fetch_add(1, std::memory_order_relaxed);
  return complaints_.take({}, std::chrono::steady_clock::now());
}

std::size_t HttpDoor::count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::size_t HttpDoor::strangers() const {
  const std::lock_guard lock(mutex_);
  return strangers_.size();
}

HttpDoorCounts HttpDoor::counts() const {
  const std::lock_guard lock(mutex_);
  HttpDoorCounts counts = counts_;
  counts.busy = busy_.load(std::memory_order_relaxed);
  counts.handshakes_failed = failed_.load(std::memory_order_relaxed);
  counts.handshakes_resumed = resumed_.load(std::memory_order_relaxed);
  counts.handshakes_delayed = delayed_.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace tributary::service
