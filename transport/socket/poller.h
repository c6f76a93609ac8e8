#pragma once
// Finds the sockets that are ready. It is an epoll set in which each socket is registered once, and is not changed
// until it is removed.
//
// The set is edge-triggered: the system reports each change once, so no further call is needed to arm the next wait.
// The price: a socket's owner must remember that the socket is ready, until a system call finds no more to read or
// write.
#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

namespace tributary::transport {

class Pollable;

class Poller {
 public:
  /// Opens all descriptors that it needs, because later none may be left. Throws std::system_error.
  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Until remove(), the socket's events from wait() have `what` as their data.ptr. Returns 0 or errno.
  [[nodiscard]] int add(int socket, std::uint32_t events, Pollable& what) const noexcept;
  /// Call it before you close the socket: if a forked process holds the socket open, its events would go on.
  void remove(int socket) const noexcept;
  /// A descriptor that is readable when wait() would not sleep, so that another epoll set can watch it.
  [[nodiscard]] int descriptor() const noexcept { return set_; }
  /// Ends one wait(), the present or the next one, with an event without data. Any thread may call it.
  void wake() const noexcept;
  /// Sleeps until something has changed, at most for `limit` (rounded up to milliseconds, as the system counts); if
  /// `limit` is zero, it does not sleep. The returned events are valid until the next call.
  [[nodiscard]] std::span<const epoll_event> wait(std::chrono::nanoseconds limit) noexcept;

 private:
  static constexpr std::size_t kEventsMax = 128;  // events of one call; further events come first in the next call
  int set_ = -1;
  int wake_ = -1;  // an eventfd that is never read: each wake() changes its count, which makes an event
  std::array<epoll_event, kEventsMax> events_{};
};

/// A socket and its place in a Poller.
class PolledSocket {
 public:
  explicit PolledSocket(Poller& poller) noexcept : poller_(&poller) {}
  ~PolledSocket() { close(); }
  PolledSocket(const PolledSocket&) = delete;
  PolledSocket& operator=(const PolledSocket&) = delete;

  [[nodiscard]] int get() const noexcept { return socket_; }
  [[nodiscard]] bool is_open() const noexcept { return socket_ >= 0; }
  /// Closes the earlier socket, and owns `socket` without watching it.
  void own(int socket) noexcept;
  /// Returns 0 or errno.
  [[nodiscard]] int watch(std::uint32_t events, Pollable& what) noexcept;
  void close() noexcept;
  /// Stops watching the socket, and gives it to the caller without closing it.
  [[nodiscard]] int release() noexcept;

 private:
  Poller* poller_;
  int socket_ = -1;
  bool watched_ = false;
};

}  // namespace tributary::transport
