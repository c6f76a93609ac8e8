#pragma once
// CollNet as NCCL's proxies use it, on host memory.
#include "client/plugins/nccl/check/session.h"

namespace tributary::nccl::check {

/// Several communicators at once: every type and operator, many requests in flight, windows, flushes, memory registered
/// meanwhile, and the end in another order on every other rank. Throws Failure at the first wrong element.
/// False: CollNet is off, on all ranks alike.
[[nodiscard]] bool check_collectives(Session& session);
/// A table of sizes: time and bandwidth of allreduce as NCCL's proxy would see them.
/// False as above.
[[nodiscard]] bool measure_collectives(Session& session);

}  // namespace tributary::nccl::check
