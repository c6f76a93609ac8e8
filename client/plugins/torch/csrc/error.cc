#include "error.h"

#include <c10/util/Exception.h>

namespace tributary::torch {

std::string sentence(const char* what, tributary_status status) {
  return sentence(what, status, tributary_last_error(nullptr));
}

std::string sentence(const char* what, tributary_status status, const char* detail) {
  return std::string(what) + ": " + (detail != nullptr && *detail != '\0' ? detail : tributary_status_string(status));
}

void check(tributary_status status, const char* what) {
  if (status != TRIBUTARY_OK) C10_THROW_ERROR(DistBackendError, sentence(what, status));
}

std::exception_ptr backend_error(const std::string& text) {
  try {
    C10_THROW_ERROR(DistBackendError, text);
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace tributary::torch
