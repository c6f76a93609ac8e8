#pragma once
// A communicator that `tributary perf` owns.
#include <memory>

#include "tributary/tributary.h"

namespace tributary::cli {

/// The deleter of a communicator. It aborts a communicator that is dropped after an error, so that no rank waits for
/// this rank. Without an error the owner releases and destroys it.
struct AbortComm {
  void operator()(tributary_comm* comm) const noexcept { tributary_comm_abort(comm); }
};
using OwnedComm = std::unique_ptr<tributary_comm, AbortComm>;

}  // namespace tributary::cli
