#include "transport/verbs/event_watch.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tributary/transport/blocked_signals.h"

namespace tributary::transport::verbs {

constexpr std::uint64_t kWake = 0;

Result<std::shared_ptr<EventWatch>> EventWatch::of_process() {
  // The object is never destroyed, because transports may begin and end while the process ends.
  static auto* const mutex = new std::mutex;
  static auto* const known = new std::weak_ptr<EventWatch>;
  const std::lock_guard lock(*mutex);
  if (auto watch = known->lock()) return watch;
  std::shared_ptr<EventWatch> made(new EventWatch);
  made->epoll_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
  made->wake_ = FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  if (made->epoll_.get() < 0 || made->wake_.get() < 0 ||
      ::epoll_ctl(made->epoll_.get(), EPOLL_CTL_ADD, made->wake_.get(), &event) != 0) {
    return fail(Errc::exhausted, std::string("no descriptor left: ") + std::strerror(errno) + ".");
  }
  const BlockedSignals blocked;
  made->thread_ = std::jthread([watch = made.get()](const std::stop_token& stop) { watch->run(stop); });
  *known = made;
  return made;
}

EventWatch::~EventWatch() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

void EventWatch::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "rdma-watch");
  while (!stop.stop_requested()) {
    epoll_event events[16];
    const int count = ::epoll_wait(epoll_.get(), events, std::size(events), -1);
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) {
      const auto found = flags_.find(events[i].data.u64);
      if (found != flags_.end()) found->second->store(true, std::memory_order_release);
    }
  }
}

std::uint64_t EventWatch::enter(int descriptor, Flag flag) {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = next_++;
    flags_.emplace(number, std::move(flag));
  }
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = number}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
  return number;
}

void EventWatch::rearm(std::uint64_t number, int descriptor) noexcept {
  epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.u64 = number}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void EventWatch::leave(std::uint64_t number, int descriptor) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  const std::lock_guard lock(mutex_);
  flags_.erase(number);
}

}  // namespace tributary::transport::verbs
