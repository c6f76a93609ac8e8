#pragma once
// The connections of an HTTP server. Connections that have not shown a token are strangers and wait in one room; the
// others have a room of their own, so that no number of strangers can displace them.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "tributary/protocol/waiting_room.h"

namespace tributary::service {

/// The calls that the door makes to a connection. Any thread.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  /// Ends the connection now, because another needs its place.
  virtual void make_room() = 0;
  /// The server stops: ends the connection now if it waits for a request, else after its answer.
  virtual void close_when_idle() = 0;
};

/// Counts since the start.
struct HttpDoorCounts {
  std::uint64_t accepted = 0;
  std::uint64_t displaced = 0;  // strangers that were closed because newer ones came
  std::uint64_t busy = 0;       // answers that strangers did not get, because too many others were under way
};

/// Any thread. The door never closes or destroys a connection while it holds the lock: it may have the last reference,
/// and a connection calls leave() at its end.
class HttpDoor {
 public:
  using Id = WaitingRoom::Id;

  /// `places`: how many strangers there may be, and how many connections that have shown a token.
  /// `stranger_bytes_max`: how many bytes of answers to strangers may be under way.
  HttpDoor(std::size_t places, std::uint64_t stranger_bytes_max);

  /// Returns the connection's number for the calls below; 0 if the server is closing. Ends another connection if there
  /// is no place.
  [[nodiscard]] Id enter(const std::shared_ptr<HttpConnection>& connection, Source from);
  /// The connection has shown a token.
  void proved(Id id);
  /// The connection is over. Does nothing if it has left already.
  void leave(Id id);
  /// Ends the oldest stranger, because the process has no descriptor left.
  void make_room();
  void close_all();

  /// True if an answer of this many bytes may go to a stranger now; the caller calls give_back() once it is sent.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::size_t strangers() const;
  [[nodiscard]] HttpDoorCounts counts() const;
  [[nodiscard]] bool closing() const noexcept { return closing_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::weak_ptr<HttpConnection> connection;
    Source from;
    bool proved = false;
  };
  [[nodiscard]] std::shared_ptr<HttpConnection> take_out(Id id);
  [[nodiscard]] std::shared_ptr<HttpConnection> make_room_in(WaitingRoom& room);

  const std::uint64_t stranger_bytes_max_;
  mutable std::mutex mutex_;  // guards the members from here to counts_
  WaitingRoom strangers_, known_;
  std::map<Id, Entry> entries_;
  Id next_ = 1;
  HttpDoorCounts counts_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> busy_{0};
  std::atomic<bool> closing_{false};
};

}  // namespace tributary::service
