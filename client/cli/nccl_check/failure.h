#pragma once
// The exception that stops the check at the first error, and says what is wrong.
#include <array>
#include <stdexcept>
#include <string>

#include "client/plugins/nccl/abi/base.h"

namespace tributary::cli::nccl_check {

namespace abi = nccl::abi;

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// No byte went by a tree, although the user demands it.
class NoTree : public Failure {
 public:
  using Failure::Failure;
};

inline void require(bool good, const std::string& what) {
  if (!good) throw Failure(what);
}
/// Returns the name of a result in nccl.h.
inline std::string name_of(abi::Result result) {
  constexpr std::array<const char*, 8> names{"ncclSuccess",       "ncclUnhandledCudaError", "ncclSystemError",
                                             "ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
                                             "ncclRemoteError",   "ncclInProgress"};
  const auto number = static_cast<std::size_t>(result);
  return number < names.size() ? names[number] : std::to_string(number);
}

inline void require_success(abi::Result result, const std::string& call) {
  require(result == abi::Result::success, call + " returned " + name_of(result));
}

}  // namespace tributary::cli::nccl_check
