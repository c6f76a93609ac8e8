#pragma once
// The connections of one core, by their ids. An id consists of the number of a place and 40 secret bits. So a packet
// finds its connection without a search, and a packet for an earlier connection finds none.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tributary/protocol/assert.h"

namespace tributary::transport::packet {

template <class Connection>
class ConnectionTable {
 public:
  [[nodiscard]] static std::uint32_t place_of(std::uint64_t id) noexcept {
    return static_cast<std::uint32_t>(id & ((std::uint64_t{1} << kPlaceBits) - 1));
  }
  /// The part of an id that differs between two uses of a place.
  [[nodiscard]] static std::uint32_t generation_of(std::uint64_t id) noexcept {
    return static_cast<std::uint32_t>(id >> kPlaceBits);
  }

  /// Gives the connection a place, and an id with the secret bits of `random()`.
  template <class Random>
  [[nodiscard]] std::uint64_t enter(std::shared_ptr<Connection> connection, Random random) {
    const std::uint32_t place = free_place();
    TRIBUTARY_ASSERT(place >> kPlaceBits == 0, "place {} has no number in an id", place);
    std::uint64_t id = 0;
    while (id >> kPlaceBits == 0) id = (random() << kPlaceBits) | place;
    TRIBUTARY_ASSERT(places_[place].id == 0 && !places_[place].connection, "place {} is taken by connection {}", place,
                     places_[place].id);
    places_[place] = {std::move(connection), id};
    return id;
  }
  /// Removes a connection, if it is in the table. The connection lives until forget_departed(), so that code that uses
  /// it may go on. Allocates no memory.
  void leave(std::uint64_t id) noexcept {
    const std::uint32_t place = place_of(id);
    if (place >= places_.size() || places_[place].id != id || id == 0) return;
    places_[place].id = 0;
    free_.push_back(place);
    departed_.push_back(std::move(places_[place].connection));
  }
  void forget_departed() noexcept { departed_.clear(); }

  [[nodiscard]] Connection* find(std::uint64_t id) const noexcept {
    const std::uint32_t place = place_of(id);
    return id != 0 && place < places_.size() && places_[place].id == id ? places_[place].connection.get() : nullptr;
  }
  /// The connection of this use of the place; nullptr: the place has a later use, or none.
  [[nodiscard]] std::shared_ptr<Connection> at(std::uint32_t place, std::uint32_t generation) const noexcept {
    if (place >= places_.size() || generation == 0 || generation_of(places_[place].id) != generation) return nullptr;
    return places_[place].connection;
  }

  /// Notes the other side's name for the connection.
  void enter_peer(std::uint64_t peer_id, std::uint64_t id) { by_peer_[peer_id] = id; }
  void leave_peer(std::uint64_t peer_id) noexcept { by_peer_.erase(peer_id); }
  [[nodiscard]] Connection* find_peer(std::uint64_t peer_id) const noexcept {
    const auto at = by_peer_.find(peer_id);
    return at != by_peer_.end() ? find(at->second) : nullptr;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    TRIBUTARY_ASSERT(free_.size() <= places_.size(), "{} of {} places are free", free_.size(), places_.size());
    return places_.size() - free_.size();
  }
  /// Calls `visit` for each connection, in the order of their places; `visit` may add and remove connections.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const std::shared_ptr<Connection> kept = places_[i].connection;
      if (kept) visit(*kept);
    }
  }

 private:
  static constexpr std::uint64_t kPlaceBits = 24;
  struct Entry {
    std::shared_ptr<Connection> connection;
    std::uint64_t id = 0;
  };

  /// Returns a free place. Also makes room in departed_ for the connection's end.
  [[nodiscard]] std::uint32_t free_place() {
    if (!free_.empty()) {
      const std::uint32_t place = free_.back();
      free_.pop_back();
      return place;
    }
    places_.emplace_back();
    free_.reserve(places_.size());
    departed_.reserve(places_.capacity());
    return static_cast<std::uint32_t>(places_.size() - 1);
  }

  std::vector<Entry> places_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint64_t> by_peer_;  // this side's ids; key: the other side's ids
  std::vector<std::shared_ptr<Connection>> departed_;         // connections that left in this turn
};

}  // namespace tributary::transport::packet
