#pragma once
// The errors that tributary_last_error returns: per thread, and per communicator.
#include <cstdint>
#include <mutex>
#include <string>

#include "tributary/protocol/error.h"
#include "tributary/tributary.h"

namespace tributary::client {

[[nodiscard]] tributary_status to_status(Errc code) noexcept;

/// A communicator's last error; shared by it and its requests. Any thread.
class CommErrors {
 public:
  CommErrors();
  void set(const std::string& sentence);
  [[nodiscard]] std::string get() const;
  /// Returns a number that no other communicator of the process has.
  [[nodiscard]] std::uint64_t id() const noexcept { return id_; }

 private:
  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::string sentence_;
};

/// Notes the error for this thread and, if there is one, for the communicator. Returns its status.
tributary_status report(const Error& error, CommErrors* comm = nullptr) noexcept;
tributary_status report(Errc code, const std::string& sentence, CommErrors* comm = nullptr) noexcept;

/// Returns this thread's last error if it was about `comm`, else the communicator's own last one; with nullptr, this
/// thread's last error. Valid until this thread's next call.
[[nodiscard]] const char* last_error(const CommErrors* comm) noexcept;

}  // namespace tributary::client
