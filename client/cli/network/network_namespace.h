#pragma once
// A network namespace without a name.
#include <functional>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The kernel keeps the namespace, with all devices in it, as long as a process is inside or holds its descriptor.
/// Nothing has to be removed: a SIGKILL of every process that uses it ends it too.
class NetworkNamespace {
 public:
  /// Errc::denied without the rights that this needs; the sentence says how to get them.
  [[nodiscard]] static Result<NetworkNamespace> make();
  NetworkNamespace(NetworkNamespace&& from) noexcept;
  NetworkNamespace& operator=(NetworkNamespace&&) = delete;
  ~NetworkNamespace();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Runs `work` in a thread of its own that has moved inside, and waits for it.
  [[nodiscard]] Status inside(const std::function<Status()>& work) const;
  /// Moves the calling thread inside, and with it all threads and processes that it starts from now on.
  [[nodiscard]] Status enter() const;

 private:
  explicit NetworkNamespace(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tributary::cli
