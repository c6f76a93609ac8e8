#include "client/communicator/local_meeting.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <exception>
#include <string>
#include <utility>

namespace tributary::client {

// Starts the thread. If eventfd fails, stop_ is not open, and the meeting cannot end before its own limit. The thread
// inherits blocked signals from its maker.
LocalMeeting::LocalMeeting(std::function<Outcome(int stop)> meet, std::function<void(Outcome)> then)
    : stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([stop = stop_.number(), meet = std::move(meet), then = std::move(then)] {
    then([&]() -> Outcome {
      try {
        return meet(stop);
      } catch (const std::exception& e) {
        return fail(Errc::exhausted, std::string("the ranks of this host did not meet: ") + e.what());
      }
    }());
  });
  pthread_setname_np(thread_.native_handle(), "tributary-meet");
}

LocalMeeting::~LocalMeeting() {
  if (stop_.open()) eventfd_write(stop_.number(), 1);
  thread_.join();
}

}  // namespace tributary::client
