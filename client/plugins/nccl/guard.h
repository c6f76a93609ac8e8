#pragma once
// The border between NCCL and the C++ code behind the tables. No exception crosses this border.
#include <exception>
#include <string>

#include "client/plugins/nccl/log.h"

namespace tributary::nccl {

template <class Body>
abi::Result guarded(const char* call, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& e) {
    warn(std::string(call) + ": " + e.what());
    return abi::Result::internal_error;
  }
}

}  // namespace tributary::nccl
