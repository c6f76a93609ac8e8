#include "transport/dpdk/wake_bell.h"

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

void WakeBell::ring() noexcept {
  if (alarm_.ring()) static_cast<void>(::eventfd_write(event_, 1));
}

void WakeBell::sleep(std::chrono::nanoseconds limit) noexcept {
  if (alarm_.fall_asleep()) {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const timespec time{.tv_sec = limit.count() / kSecond, .tv_nsec = limit.count() % kSecond};
    pollfd event{.fd = event_, .events = POLLIN, .revents = 0};
    eventfd_t ignored = 0;
    // If the bell is rung just when the limit ends, the ring is kept, and ends the next sleep.
    if (::ppoll(&event, 1, &time, nullptr) > 0) static_cast<void>(::eventfd_read(event_, &ignored));
  }
  alarm_.wake_up();
  static_cast<void>(take());
}

}  // namespace tributary::transport::dpdk
