#include "transport/socket/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "tributary/protocol/assert.h"

namespace tributary::transport {
namespace {

int whole_milliseconds(std::chrono::nanoseconds limit) noexcept {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  return static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, std::numeric_limits<int>::max()));
}

}  // namespace

Poller::Poller() : set_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  if (set_ >= 0 && wake_ >= 0 && ::epoll_ctl(set_, EPOLL_CTL_ADD, wake_, &event) == 0) return;
  const int error = errno;
  if (set_ >= 0) ::close(set_);
  if (wake_ >= 0) ::close(wake_);
  throw std::system_error(error, std::system_category(), "cannot watch sockets");
}

Poller::~Poller() {
  ::close(set_);
  ::close(wake_);
}

int Poller::add(int socket, std::uint32_t events, Pollable& what) const noexcept {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.ptr = &what;
  return ::epoll_ctl(set_, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : errno;
}

void Poller::remove(int socket) const noexcept {
  epoll_event ignored{};
  (void)::epoll_ctl(set_, EPOLL_CTL_DEL, socket, &ignored);
}

void Poller::wake() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);  // fails only after 2^64 wakes
}

std::span<const epoll_event> Poller::wait(std::chrono::nanoseconds limit) noexcept {
  const int count = ::epoll_wait(set_, events_.data(), static_cast<int>(events_.size()), whole_milliseconds(limit));
  return std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));  // a signal makes no socket
                                                                                  // ready
}

// ---- PolledSocket

void PolledSocket::own(int socket) noexcept {
  close();
  socket_ = socket;
}

int PolledSocket::watch(std::uint32_t events, Pollable& what) noexcept {
  TRIBUTARY_ASSERT(!watched_, "socket {} is watched a second time", socket_);
  const int error = poller_->add(socket_, events, what);
  watched_ = error == 0;
  return error;
}

void PolledSocket::close() noexcept {
  if (is_open()) ::close(release());
}

int PolledSocket::release() noexcept {
  if (std::exchange(watched_, false)) poller_->remove(socket_);
  return std::exchange(socket_, -1);
}

}  // namespace tributary::transport
