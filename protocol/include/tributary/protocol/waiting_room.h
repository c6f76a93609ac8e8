#pragma once
// The waiting room contains a listener's connections from strangers: processes that have proved nothing yet. Every
// listener of the project uses it. It limits the number of such connections, their time and so their memory. Each
// source address has a share of the places.
//
// A newcomer always gets a place. If the room is full, the listener closes the oldest connection: an honest process
// proves itself within one or two round trips, so the oldest connection is the least likely to be honest. But a flood
// from one address must not make other connections old. So while a source has more than its share, an eighth of the
// places, the listener closes the oldest connection of the source with the most connections. Shares count only in a
// full room, so a whole job behind one address may fill the room.
//
// So a newcomer from an address within its share can stay until `places` others have come. From a flooding address, it
// can stay until an eighth as many have come. A process that has proved itself leaves the room, safe from strangers.
//
// The class uses no I/O and no clock: times are nanoseconds of the caller's clock. One thread at a time uses a room.
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace tributary {

/// The address for which a share counts: a whole IPv4 address, but only the /64 prefix of an IPv6 address, because one
/// host may own a whole /64.
struct Source {
  std::uint64_t network = 0;
  friend auto operator<=>(const Source&, const Source&) = default;
};
/// Returns the source of an address. The caller maps an IPv4 address into IPv6 (::ffff:a.b.c.d).
[[nodiscard]] Source source_of(const std::array<std::byte, 16>& address) noexcept;

class WaitingRoom {
 public:
  /// The number by which the owner names a connection in the room.
  using Id = std::uint64_t;
  /// The value of `limit_ns` for an owner that has other limits for its connections.
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 2;

  /// `places`: number of places, at least 1. `limit_ns`: the time for which a connection may stay.
  WaitingRoom(std::size_t places, std::int64_t limit_ns);

  /// Returns the connection to close before the next newcomer enters; nullopt if there is a free place.
  [[nodiscard]] std::optional<Id> makes_room() const;
  /// Adds a connection. There must be a free place, and `id` must be new. Times must not go back from call to call.
  void enter(Id id, Source from, std::int64_t now_ns);
  /// Removes a connection that has proved itself or has ended. Returns false if it was not in the room.
  bool leave(Id id);
  /// Returns the oldest connection whose time is over; nullopt if there is none.
  [[nodiscard]] std::optional<Id> late(std::int64_t now_ns) const;
  /// Returns the time at which the oldest connection's time is over; nullopt in an empty room.
  [[nodiscard]] std::optional<std::int64_t> next_limit_ns() const;
  /// Gives every connection `absence_ns` more time, because the owner stood still for this time and read no messages.
  void excuse(std::int64_t absence_ns) noexcept;
  [[nodiscard]] std::optional<Id> oldest() const;

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  [[nodiscard]] std::size_t places() const noexcept { return places_; }
  /// Returns the share: in a full room, a source with more connections loses its own connections first.
  [[nodiscard]] std::size_t share() const noexcept { return share_; }
  /// Returns how many connections in the room come from one source.
  [[nodiscard]] std::size_t size(Source from) const;

 private:
  using Ticket = std::uint64_t;  // number in the order of arrival
  struct Waiting {
    Id id;
    Source from;
    std::int64_t limit_ns;
  };

  const std::size_t places_;
  const std::size_t share_;
  const std::int64_t limit_ns_;
  Ticket next_ = 0;
  std::map<Ticket, Waiting> waiting_;
  std::map<Id, Ticket> tickets_;
  std::map<Source, std::set<Ticket>> by_source_;
  std::set<Source> heavy_;  // the sources above their share: seven at most
};

}  // namespace tributary
