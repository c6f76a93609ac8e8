#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace tributary_torch {

/// Runs tasks one after the other on a thread of its own, which starts with the first of them.
/// post() and drain() may be called from any other thread. Tasks must not throw.
class SerialThread {
 public:
  SerialThread() = default;
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;
  ~SerialThread();  ///< runs what was posted, then ends

  void post(std::function<void()> task);
  /// No task is waiting or running.
  [[nodiscard]] bool idle();
  /// Returns when every task posted so far has run.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable drained_;
  std::deque<std::function<void()>> tasks_;
  bool running_ = false;  // a task has left the queue and has not returned
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tributary_torch
