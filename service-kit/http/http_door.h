#pragma once
// The connections of an HTTP server. Connections that have not shown a token are strangers, and are in one room. The
// other connections are in a second room, so that no number of strangers can displace them.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "service-kit/rate_limit.h"
#include "tributary/protocol/waiting_room.h"

namespace tributary::service {

/// The interface by which the door calls a connection. Any thread may use it.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  /// Ends the connection now, because another connection needs its place.
  virtual void make_room() = 0;
  /// Ends the connection, because the server stops: now if it waits for a request, else after its answer.
  virtual void close_when_idle() = 0;
};

/// The door's counts since the start.
struct HttpDoorCounts {
  std::uint64_t accepted = 0;
  std::uint64_t displaced = 0;           // strangers that the door closed because newer connections came
  std::uint64_t busy = 0;                // answers that strangers did not get, because too many answers were under way
  std::uint64_t handshakes_failed = 0;   // handshakes of TLS that failed
  std::uint64_t handshakes_delayed = 0;  // handshakes that waited, because too many came from one address
  std::uint64_t handshakes_resumed = 0;  // handshakes that resumed an earlier session, without a signature
};

/// The door. Any thread may use it. It never closes or destroys a connection while it holds its lock: it may have the
/// connection's last reference, and a connection calls leave() at its end.
class HttpDoor {
 public:
  using Id = WaitingRoom::Id;

  /// `places`: the most strangers, and also the most connections that have shown a token.
  /// `stranger_bytes_max`: the most bytes of answers to strangers that may be under way.
  /// `handshakes_per_second_max`: of TLS, from one address; 0: no limit.
  HttpDoor(std::size_t places, std::uint64_t stranger_bytes_max, std::uint64_t handshakes_per_second_max = 0);

  /// Adds a connection. Returns its number for the calls below; 0 if the server is closing. Ends another connection if
  /// there is no free place.
  [[nodiscard]] Id enter(const std::shared_ptr<HttpConnection>& connection, Source from);
  /// Notes that the connection has shown a token.
  void proved(Id id);
  /// Removes a connection that has ended. Does nothing if it was removed before.
  void leave(Id id);
  /// Ends the oldest stranger, because the process has no descriptor left.
  void make_room();
  void close_all();

  /// True if an answer of this many bytes may go to a stranger now; the caller must call give_back() after the answer.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give_back(std::uint64_t bytes) noexcept { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// True if a handshake of TLS with this address may begin now; false if it must wait. A handshake costs the server
  /// far more than the other side, so no address may use up the time of all others.
  [[nodiscard]] bool may_shake_hands(Source from);
  void count_resumed_handshake() noexcept { resumed_.fetch_add(1, std::memory_order_relaxed); }
  void count_delayed_handshake() noexcept { delayed_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns true if the log may have a line about this handshake: it has at most one such line a second.
  [[nodiscard]] bool count_failed_handshake();

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
  std::atomic<std::uint64_t> failed_{0}, delayed_{0}, resumed_{0};  // handshakes
  RateLimit handshakes_, complaints_{1};
  std::atomic<bool> closing_{false};
};

}  // namespace tributary::service
