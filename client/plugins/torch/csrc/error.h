#pragma once

#include <exception>
#include <string>

#include "tributary/tributary.h"

namespace tributary_torch {

/// The library's own sentence about the call that just failed on this thread, headed by what was asked for, as
/// "tributary:all_reduce".
std::string sentence(const char* what, tributary_status status);
/// The same with a sentence that the library gave otherwise.
std::string sentence(const char* what, tributary_status status, const char* detail);

/// Raises torch.distributed.DistBackendError with that sentence unless `status` is TRIBUTARY_OK. To be called on the
/// thread that made the failing call, before it makes another one.
void check(tributary_status status, const char* what);

/// The exception of a sentence made earlier, for a Work that failed on another thread.
std::exception_ptr backend_error(const std::string& text);

}  // namespace tributary_torch
