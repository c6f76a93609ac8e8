#pragma once
// Turns signals into something to poll, so that everything happens in one loop and nothing in a handler.
#include <optional>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// From its construction on, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD of this process only come here; SIGPIPE is
/// ignored. Make it before the first thread.
class SignalQueue {
 public:
  [[nodiscard]] static Result<SignalQueue> open();
  SignalQueue(SignalQueue&& from) noexcept;
  SignalQueue& operator=(SignalQueue&&) = delete;
  ~SignalQueue();

  /// Readable when a signal has come.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Takes the next signal, if there is one.
  [[nodiscard]] std::optional<int> take() const noexcept;

 private:
  explicit SignalQueue(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tributary::cli
