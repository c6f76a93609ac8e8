#pragma once
// The errors that tributary_last_error returns: one for each thread, and one for each communicator.
#include <cstdint>
#include <mutex>
#include <string>

#include "tributary/protocol/error.h"
#include "tributary/tributary.h"

namespace tributary::client {

[[nodiscard]] tributary_status to_status(Errc code) noexcept;

/// A communicator's last error. The communicator and its requests share this object. Any thread may use it.
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

/// Notes the error for this thread and, if `comm` is not nullptr, for the communicator. Returns the error's status.
tributary_status report(const Error& error, CommErrors* comm = nullptr) noexcept;
tributary_status report(Errc code, const std::string& sentence, CommErrors* comm = nullptr) noexcept;

/// Returns this thread's last error if it was about `comm`, else the communicator's last error; with nullptr, this
/// thread's last error. The text is valid until this thread's next call.
[[nodiscard]] const char* last_error(const CommErrors* comm) noexcept;

}  // namespace tributary::client
