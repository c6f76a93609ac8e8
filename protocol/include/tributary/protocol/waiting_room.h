#pragma once
// The connections of a listener whose other side has not proved yet that it belongs here. One rule for every listener
// of the project: bounded in number, in time and so in memory, with a share for each source address.
//
// A newcomer is always let in. When the room is full somebody makes room: the oldest, because an honest party proves
// itself within a round trip or two, so the oldest is the least likely to be one. Strangers from one address are not to
// make others old, though: while a source has more than its share, an eighth of the places, the oldest from the source
// with the most makes room. A share counts only in a full room, so a whole job behind one address may fill it.
//
// So a newcomer from an address within its share has until `places` others have come; one from a flooding address, an
// eighth of that. Parties that have proved themselves leave the room, and nobody who is in it can cost them anything.
//
// No I/O and no clock: times are nanoseconds of the caller's clock. One thread, or under its owner's lock.
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace tributary {

/// A connection's address as far as shares go: the whole of an IPv4 address, the /64 of an IPv6 address, because one
/// host may have all of that to itself.
struct Source {
  std::uint64_t network = 0;
  friend auto operator<=>(const Source&, const Source&) = default;
};
/// An IPv4 address comes mapped into IPv6 (::ffff:a.b.c.d).
[[nodiscard]] Source source_of(const std::array<std::byte, 16>& address) noexcept;

class WaitingRoom {
 public:
  /// Connections that are here, in words of their owner.
  using Id = std::uint64_t;
  /// For owners that have limits of another kind.
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 2;

  /// `places`: at least one. `limit_ns`: how long one may be here.
  WaitingRoom(std::size_t places, std::int64_t limit_ns);

  /// The one to be closed before the next newcomer enters; none: there is a place.
  [[nodiscard]] std::optional<Id> makes_room() const;
  /// There is a place, and `id` is not here. Times do not go back from call to call.
  void enter(Id id, Source from, std::int64_t now_ns);
  /// It has proved itself, or is gone. False: it was not here.
  bool leave(Id id);
  /// One whose time is over, the oldest first.
  [[nodiscard]] std::optional<Id> late(std::int64_t now_ns) const;
  /// When the next one's time is over; none: nobody is here.
  [[nodiscard]] std::optional<std::int64_t> next_limit_ns() const;
  /// So long the owner itself stood still, and could not have heard what they said.
  void excuse(std::int64_t absence_ns) noexcept;
  [[nodiscard]] std::optional<Id> oldest() const;

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return waiting_.size(); }
  [[nodiscard]] std::size_t places() const noexcept { return places_; }
  /// Those that one source may have in a full room before its own make room first.
  [[nodiscard]] std::size_t share() const noexcept { return share_; }
  /// Those that are here from one source.
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
