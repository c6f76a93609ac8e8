#pragma once

#include <functional>
#include <memory>

#include "process.h"

namespace tributary_torch {

/// Runs tasks one after the other on a thread of its own, which starts with the first of them.
/// post() and drain() may be called from any other thread. Tasks must not throw. A forked child has no such thread:
/// there nothing runs, and nothing is waited for.
class SerialThread {
 public:
  SerialThread();
  SerialThread(const SerialThread&) = delete;
  SerialThread& operator=(const SerialThread&) = delete;
  ~SerialThread();  ///< runs what was posted, then ends

  void post(std::function<void()> task);
  /// No task is waiting or running.
  [[nodiscard]] bool idle();
  /// Returns when every task posted so far has run.
  void drain();

 private:
  struct State;

  const MadeHere made_here_;
  std::unique_ptr<State> state_;
};

}  // namespace tributary_torch
