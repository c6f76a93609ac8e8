#pragma once
// One thread of the process that waits for rare events (connections, errors of devices), so that a transport that spins
// need not ask the system for them.
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

  /// The thread ends when nobody holds the object any more.
  [[nodiscard]] static Result<std::shared_ptr<EventWatch>> of_process();
  ~EventWatch();
  EventWatch(const EventWatch&) = delete;
  EventWatch& operator=(const EventWatch&) = delete;

  // ---- any thread
  /// Sets the flag once the descriptor is readable; again only after rearm().
  [[nodiscard]] std::uint64_t enter(int descriptor, Flag flag);
  void rearm(std::uint64_t number, int descriptor) noexcept;
  /// Must be called before the descriptor is closed.
  void leave(std::uint64_t number, int descriptor) noexcept;

 private:
  EventWatch() = default;
  void run(const std::stop_token& stop);

  FileDescriptor epoll_;
  FileDescriptor wake_;
  std::mutex mutex_;  // guards flags_, next_
  std::map<std::uint64_t, Flag> flags_;
  std::uint64_t next_ = 1;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace tributary::transport::verbs
