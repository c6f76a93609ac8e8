#pragma once
// A communicator that perf owns.
#include <memory>

#include "tributary/tributary.h"

namespace tributary::cli {

/// Aborts the communicator if it is dropped after an error, so that no rank waits for this one. Otherwise it is
/// released and destroyed.
struct AbortComm {
  void operator()(tributary_comm* comm) const noexcept { tributary_comm_abort(comm); }
};
using OwnedComm = std::unique_ptr<tributary_comm, AbortComm>;

}  // namespace tributary::cli
