#pragma once
// The border between C callers and the C++ code: no exception crosses it.
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "client/api/comm.h"
#include "client/api/last_error.h"

namespace tributary::client {

template <class Body>
tributary_status guarded(const char* function, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return report(Errc::exhausted, std::string(function) + ": out of memory");
  } catch (const std::exception& e) {
    report(Errc::io, std::string(function) + ": " + e.what());
    return TRIBUTARY_ERROR_INTERNAL;
  }
}

/// Returns true if this process can use the communicator. Else reports the error: there is no communicator, or it
/// belongs to another process.
template <class Found>
[[nodiscard]] bool usable(const char* function, const tributary_comm* handle, const Found& comm) {
  if (!comm) {
    report(Errc::bad_argument, std::string(function) + (handle == nullptr ? ": comm is NULL"
                                                                          : ": comm is not a live communicator: it was "
                                                                            "destroyed or aborted, or never was one"));
    return false;
  }
  if (!comm->of_this_process()) {
    report(
        Errc::bad_argument,
        std::string(function) + ": comm was made before a fork: only the process that made a communicator can use it");
    return false;
  }
  return true;
}

/// Returns the communicator behind a handle. If the handle is not live, or belongs to another process, reports the
/// error and returns nullptr.
[[nodiscard]] inline std::shared_ptr<Comm> live(const char* function, const tributary_comm* handle) {
  auto comm = comms().find(handle);
  return usable(function, handle, comm) ? std::move(comm) : nullptr;
}

}  // namespace tributary::client
