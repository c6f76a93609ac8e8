#pragma once
// A network namespace that has no name.
#include <functional>

#include "tributary/protocol/error.h"

namespace tributary::cli {

/// The namespace. The kernel keeps it, with all its devices, as long as a process is in it or has its descriptor. So it
/// needs no removal: a SIGKILL of all processes that use it ends it, too.
class NetworkNamespace {
 public:
  /// Makes a namespace. Errc::denied: this process lacks the rights; the sentence says how to get them.
  [[nodiscard]] static Result<NetworkNamespace> make();
  NetworkNamespace(NetworkNamespace&& from) noexcept;
  NetworkNamespace& operator=(NetworkNamespace&&) = delete;
  ~NetworkNamespace();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Runs `work` in a new thread that has moved into the namespace, and waits for it.
  [[nodiscard]] Status inside(const std::function<Status()>& work) const;
  /// Moves the calling thread into the namespace, with all threads and processes that it starts from now on.
  [[nodiscard]] Status enter() const;

 private:
  explicit NetworkNamespace(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace tributary::cli
