#pragma once
// The end of a group is a collective call, but the end of NCCL's communicator is not: ranks may close their
// communicators in any order, and must not wait for each other there.
#include "tributary/tributary.h"

namespace tributary::nccl {

/// Ends a communicator in which all of this rank's operations have ended; other ranks may still need this rank for a
/// moment. The end of the process waits for the communicator's end, at most ten seconds.
void end_in_the_background(tributary_comm* comm);

}  // namespace tributary::nccl
