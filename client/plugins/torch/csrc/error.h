#pragma once

#include <exception>
#include <string>

#include "tributary/tributary.h"

namespace tributary::torch {

/// Returns the library's own sentence about the call that just failed on this thread, behind the name of the operation,
/// such as "tributary:all_reduce".
std::string sentence(const char* what, tributary_status status);
/// Does the same for a sentence that the library gave in another way.
std::string sentence(const char* what, tributary_status status, const char* detail);

/// Raises torch.distributed.DistBackendError with that sentence unless `status` is TRIBUTARY_OK. Call it on the thread
/// that made the failing call, before another call.
void check(tributary_status status, const char* what);

/// Makes the exception for a sentence made earlier, for a Work that failed on another thread.
std::exception_ptr backend_error(const std::string& text);

}  // namespace tributary::torch
