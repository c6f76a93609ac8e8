#pragma once
// Turns signals into a descriptor to poll, so that one loop handles all events, and no handler does work.
#include <optional>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The queue of signals. From its construction on, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGCHLD of this process arrive
/// only here, and SIGPIPE is ignored. Make it before the first thread.
class SignalQueue {
 public:
  [[nodiscard]] static Result<SignalQueue> open();
  SignalQueue(SignalQueue&& from) noexcept;
  SignalQueue& operator=(SignalQueue&&) = delete;
  ~SignalQueue();

  /// Returns a descriptor that is readable when a signal has come.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Returns the next signal; nullopt if there is none.
  [[nodiscard]] std::optional<int> take() const noexcept;

 private:
  explicit SignalQueue(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tributary::cli
