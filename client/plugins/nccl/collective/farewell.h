#pragma once
// The end of a group is collective, NCCL's is not: ranks may close their communicators in any order, and must not wait
// for each other there.
#include "tributary/tributary.h"

namespace tributary::nccl {

/// Ends a communicator of which every own operation has ended; the others' may still need this rank for a moment. The
/// process's end waits for it, but not for long.
void end_in_the_background(tributary_comm* comm);

}  // namespace tributary::nccl
