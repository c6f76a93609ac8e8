#include "client/cli/run/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace tributary::cli {

Result<SignalQueue> SignalQueue::open() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  const int descriptor = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (descriptor >= 0) return SignalQueue(descriptor);
  return fail(Errc::io, std::string("a signalfd could not be made: ") + std::strerror(errno));
}

SignalQueue::SignalQueue(SignalQueue&& from) noexcept : descriptor_(std::exchange(from.descriptor_, -1)) {}

SignalQueue::~SignalQueue() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<int> SignalQueue::take() const noexcept {
  signalfd_siginfo info{};
  if (read(descriptor_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace tributary::cli
