#pragma once

#include <exception>
#include <string>

#include "tributary/tributary.h"

namespace tributary::torch {

/// Returns a sentence: the name of the operation, such as "tributary:all_reduce", and the library's own sentence about
/// the call that has just failed on this thread.
std::string sentence(const char* what, tributary_status status);
/// Does the same with `detail`, a sentence that the library passed to a callback.
std::string sentence(const char* what, tributary_status status, const char* detail);

/// Raises torch.distributed.DistBackendError with this sentence if `status` is not TRIBUTARY_OK. Call it on the thread
/// of the failed call, before another call of the library.
void check(tributary_status status, const char* what);

/// Makes the exception from a sentence, for a Work that failed on another thread.
std::exception_ptr backend_error(const std::string& text);

}  // namespace tributary::torch
