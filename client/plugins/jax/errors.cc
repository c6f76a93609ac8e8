#include "client/plugins/jax/errors.h"

#include <string>

#include "client/plugins/jax/abi.h"

namespace tributary::jax {
namespace {

thread_local std::string last;

}  // namespace

int fail(int error_class, const char* call, std::string_view sentence) {
  last = std::string(call) + ": " + std::string(sentence);
  return error_class;
}

int outcome(tributary_status status, const char* call, const tributary_comm* comm) {
  if (status == TRIBUTARY_OK) return kSuccess;
  return fail(kErrorOther, call, tributary_last_error(comm));
}

const char* last_sentence() {
  return last.c_str();
}

}  // namespace tributary::jax
