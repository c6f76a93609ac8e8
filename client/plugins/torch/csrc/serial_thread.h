#pragma once

#include <functional>
#include <memory>

#include "process.h"

namespace tributary::torch {

/// Runs tasks one after the other on a thread of its own, which starts with the first task. Any other thread may call
/// post() and drain(). Tasks must not throw. In a forked child the thread does not exist: no task runs, and drain()
/// does not wait.
class SerialThread {
 public:
  SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;
  ~SerialThread();  ///< runs all posted tasks, then ends the thread

  void post(std::function<void()> task);
  /// Returns true if no task waits or runs.
  [[nodiscard]] bool idle();
  /// Returns when every task posted so far has run.
  void drain();

 private:
  struct State;

  const MadeHere made_here_;
  std::unique_ptr<State> state_;
};

}  // namespace tributary::torch
