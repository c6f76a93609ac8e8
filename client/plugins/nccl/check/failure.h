#pragma once
// The check stops at the first thing that is wrong, and says what.
#include <stdexcept>
#include <string>

#include "client/plugins/nccl/abi/base.h"

namespace tributary::nccl::check {

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void require(bool good, const std::string& what) {
  if (!good) throw Failure(what);
}
inline void require_success(abi::Result result, const std::string& call) {
  require(result == abi::Result::success, call + " returned " + std::to_string(static_cast<int>(result)));
}

}  // namespace tributary::nccl::check
