#pragma once
// One thread of the process that waits for rare events (connections, errors of devices), so that a spinning transport
// makes no system call for them.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "transport/verbs/resources.h"
#include "tributary/protocol/error.h"

namespace tributary::transport::verbs {

class EventWatch {
 public:
  using Flag = std::shared_ptr<std::atomic<bool>>;

  /// The thread ends when no transport holds the object.
  [[nodiscard]] static Result<std::shared_ptr<EventWatch>> of_process();
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  // ---- Calls of any thread
  /// Sets the flag when the descriptor is readable, once until the next rearm().
  [[nodiscard]] std::uint64_t enter(int descriptor, Flag flag);
  void rearm(std::uint64_t number, int descriptor) noexcept;
  /// Call it before you close the descriptor.
  void leave(std::uint64_t number, int descriptor) noexcept;

 private:
  EventWatch() = default;
  void run(const std::stop_token& stop);

  FileDescriptor epoll_;
  FileDescriptor wake_;
  std::mutex mutex_;  // guards flags_, next_
  std::map<std::uint64_t, Flag> flags_;
  std::uint64_t next_ = 1;
  std::jthread thread_;  // declared last, because it uses the other members
};

}  // namespace tributary::transport::verbs
