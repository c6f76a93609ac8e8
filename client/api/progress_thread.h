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

  /// `on_ready` is called once on the new thread, when the ranks have met or cannot.
  ProgressThread(ProgressParts parts, std::function<void(const Status&)> on_ready);
  /// stop()s.
  ~ProgressThread();

  /// Runs `call` on the thread, in the order of the calls. False: it is over, and the call was dropped. Any thread.
  [[nodiscard]] bool submit(Call call);
  /// Sends what is queued, destroys communicator and transport, joins. Calls not run yet, and operations not ended, are
  /// dropped without an answer; buffers are not referenced any more. Any thread but this one; the first counts.
  void stop();

 private:
  void run(const std::function<void(const Status&)>& on_ready);
  void drive(const std::function<void(const Status&)>& on_ready);
  void run_calls();
  void tell_path(const std::string& line) const;
  void tell_failure();
  void flush();

  ProgressParts parts_;
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
