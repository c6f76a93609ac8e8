#pragma once
// The connections of an HTTP server. Those that have not shown a token are strangers and wait in one room; those that
// have are in a room of their own, so that no number of strangers costs them anything.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "tributary/protocol/waiting_room.h"

namespace tributary::service {

/// The proof that the door asks of a connection. Any thread.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  /// Others need its place: it ends now.
  virtual void make_room() = 0;
  /// The server stops: it ends now if it waits for a request, else after its answer.
  virtual void close_when_idle() = 0;
};

/// Since the start.
struct HttpDoorCounts {
  std::uint64_t accepted = 0;
  std::uint64_t displaced = 0;  // strangers that were closed because newer ones came
  std::uint64_t busy = 0;       // answers that strangers did not get, because too many others were still being sent
};

/// Any thread. No connection is closed or destroyed while the lock is held: the door may have the last reference to
/// one, whose end calls leave().
class HttpDoor {
 public:
  using Id = WaitingRoom::Id;

  /// `places`: of strangers, and again of those that have shown a token.
  /// `stranger_bytes_max`: of answers to strangers that are under way.
  HttpDoor(std::size_t places, std::uint64_t stranger_bytes_max);

  /// The connection's number, for all that follows. A connection that must make room is told so. 0: the server is
  /// closing.
  [[nodiscard]] Id enter(const std::shared_ptr<HttpConnection>& connection, Source from);
  /// It has shown a token.
  void proved(Id id);
  /// It is over. Nothing happens if it has left already.
  void leave(Id id);
  /// The process has no descriptor left: the one that waits longest for nothing makes room.
  void make_room();
  void close_all();

  /// Whether an answer of so many bytes may be sent to a stranger now; then give_back() follows when it was.
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
  mutable std::mutex mutex_;  // guards what follows, up to counts_
  WaitingRoom strangers_, known_;
  std::map<Id, Entry> entries_;
  Id next_ = 1;
  HttpDoorCounts counts_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> busy_{0};
  std::atomic<bool> closing_{false};
};

}  // namespace tributary::service
