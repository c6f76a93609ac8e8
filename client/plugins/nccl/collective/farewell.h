#pragma once
// The end of a group is collective; the end of NCCL's communicator is not: ranks may close theirs in any order, and
// must not wait for each other there.
#include "tributary/tributary.h"

namespace tributary::nccl {

/// Ends a communicator in which all of this rank's operations have ended; other ranks may still need this one for a
/// moment. The end of the process waits for it, but not for long.
void end_in_the_background(tributary_comm* comm);

}  // namespace tributary::nccl
