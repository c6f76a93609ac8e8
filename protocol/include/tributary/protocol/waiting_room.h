#pragma once
// The waiting room holds a listener's connections from strangers: processes that have proved nothing yet. Every
// listener of the project uses it. It bounds their number, their time and so their memory, with a share for each source
// address.
//
// A newcomer is always let in. When the room is full, the listener closes a connection for it: the oldest, because an
// honest process proves itself within a round trip or two, so the oldest is the least likely to be honest. Yet a flood
// from one address must not make others old: while a source has more than its share, which is an eighth of the places,
// the listener closes the oldest of the source that has the most. Shares count only in a full room, so a whole job
// behind one address may fill it.
//
// So a newcomer from an address within its share can stay until `places` others have come; one from a flooding address,
// until an eighth as many have. A process that has proved itself leaves the room, and no stranger can harm it.
//
// No I/O and no clock: times are nanoseconds of the caller's clock. One thread uses it, or all under its owner's lock.
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace tributary {

/// The address by which shares are counted: the whole of an IPv4 address, the /64 prefix of an IPv6 address, because
/// one host may own a whole /64.
struct Source {
  std::uint64_t network = 0;
  friend auto operator<=>(const Source&, const Source&) = default;
};
/// The caller gives an IPv4 address mapped into IPv6 (::ffff:a.b.c.d).
[[nodiscard]] Source source_of(const std::array<std::byte, 16>& address) noexcept;

class WaitingRoom {
 public:
  /// The owner's number for a connection in the room.
  using Id = std::uint64_t;
  /// The limit for an owner that ends its connections by other limits.
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 2;

  /// `places`: at least one. `limit_ns`: how long a connection may stay.
  WaitingRoom(std::size_t places, std::int64_t limit_ns);

  /// Returns the connection to be closed before the next newcomer enters; none while there is a free place.
  [[nodiscard]] std::optional<Id> makes_room() const;
  /// Needs a free place and an `id` that is not in the room. Times do not go back from call to call.
  void enter(Id id, Source from, std::int64_t now_ns);
  /// Call it when a connection has proved itself or has ended. False: it was not in the room.
  bool leave(Id id);
  /// Returns the oldest connection whose time is over, if any.
  [[nodiscard]] std::optional<Id> late(std::int64_t now_ns) const;
  /// Returns when the next connection's time is over; none in an empty room.
  [[nodiscard]] std::optional<std::int64_t> next_limit_ns() const;
  /// Gives every connection `absence_ns` more, because the owner stood still for this time and could not hear them.
  void excuse(std::int64_t absence_ns) noexcept;
  [[nodiscard]] std::optional<Id> oldest() const;

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  [[nodiscard]] std::size_t places() const noexcept { return places_; }
  /// Returns how many connections one source may have in a full room before its own are closed first.
  [[nodiscard]] std::size_t share() const noexcept { return share_; }
  /// Returns how many connections in the room come from one source.
  [[nodiscard]] std::size_t size(Source from) const;

 private:
  using Ticket = std::uint64_t;  // in the order of arrival
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
