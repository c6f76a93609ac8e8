#include "dpdk/wake_bell.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tributary::transport::dpdk {

Result<std::unique_ptr<WakeBell>> WakeBell::make() {
  const int event = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event < 0) return fail(Errc::io, std::string("no eventfd: ") + std::strerror(errno));
  return std::unique_ptr<WakeBell>(new WakeBell(event));
}

WakeBell::~WakeBell() {
  ::close(event_);
}

// Either the sleeper sees that it was rung, or the ringer sees that it sleeps: both orders are sequentially consistent.
void WakeBell::ring() noexcept {
  rung_.store(true);
  if (asleep_.load()) static_cast<void>(::eventfd_write(event_, 1));
}

bool WakeBell::take() noexcept {
  return rung_.load(std::memory_order_relaxed) && rung_.exchange(false);
}

void WakeBell::sleep(std::chrono::nanoseconds limit) noexcept {
  asleep_.store(true);
  if (!rung_.load()) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const timespec time{.tv_sec = limit.count() / kSecond, .tv_nsec = limit.count() % kSecond};
    pollfd event{.fd = event_, .events = POLLIN, .revents = 0};
    ::ppoll(&event, 1, &time, nullptr);
  }
  asleep_.store(false);
  eventfd_t ignored = 0;
  if (take()) static_cast<void>(::eventfd_read(event_, &ignored));
}

}  // namespace tributary::transport::dpdk
