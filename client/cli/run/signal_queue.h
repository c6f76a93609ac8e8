#pragma once
// Signals as something to poll, so that everything happens in one loop and nothing in a handler.
#include <optional>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// From its making on SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD of this process come here and do nothing else;
/// SIGPIPE is ignored. Make it before the first thread.
class SignalQueue {
 public:
  [[nodiscard]] static Result<SignalQueue> open();
  SignalQueue(SignalQueue&& from) noexcept;
  SignalQueue& operator=(SignalQueue&&) = delete;
  ~SignalQueue();

  /// Readable when a signal is there.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// The next one, if there is one.
  [[nodiscard]] std::optional<int> take() const noexcept;

 private:
  explicit SignalQueue(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tributary::cli
