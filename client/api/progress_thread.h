#pragma once
// The thread behind one communicator: it owns the transport and the communicator, makes both, drives both, ends both.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/api/meeting.h"
#include "client/core/communicator.h"

namespace tributary::client {

struct ProgressParts {
  std::unique_ptr<Meeting> meeting;                 // rank 0's: its transport is the communicator's
  std::unique_ptr<transport::Transport> transport;  // the other ranks'
  std::unique_ptr<GroupService> service;            // rank 0's, if a manager is configured; answers on that transport
  CommunicatorSettings settings;
  std::string transport_name;
};

class ProgressThread {
 public:
  using Call = std::move_only_function<void(Communicator&)>;

  struct Events {
    std::function<void(const Status&)> ready;  // the ranks have met, or cannot
    /// The last one: communicator and transport are gone, and so is every reference to callers' buffers. What was
    /// submitted and has not answered never will.
    std::function<void(const Error& why)> over;
  };
  /// Events come on the new thread.
  ProgressThread(ProgressParts parts, Events events);
  /// stop()s.
  ~ProgressThread();

  /// Runs `call` on the thread, in the order of the calls. False: it is over, and the call was dropped. Any thread.
  [[nodiscard]] bool submit(Call call);
  /// Sends what is queued, destroys communicator and transport, joins. Any thread but this one; the first counts.
  void stop();

 private:
  void run();
  void drive();
  void run_calls();
  void tell_path(const std::string& line) const;
  void tell_failure();
  void flush();

  ProgressParts parts_;
  Events events_;
  transport::Transport* transport_;
  std::unique_ptr<Communicator> communicator_;
  bool failure_told_ = false;

  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::vector<Call> calls_;  // under mutex_
  bool woken_ = false;       // under mutex_: run_calls() was posted and has not begun
  bool over_ = false;        // under mutex_: the transport may be gone
  std::once_flag stopped_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace tributary::client
