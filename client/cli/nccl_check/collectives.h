#pragma once
// Uses CollNet as NCCL's proxies do, on host memory.
#include "client/cli/nccl_check/session.h"

namespace tributary::cli::nccl_check {

/// Checks several communicators at once: every type and operator, many requests in flight, windows, flushes, memory
/// registered meanwhile. Every second rank ends them in another order. Throws Failure at the first wrong element. Returns
/// false if CollNet is off, on all ranks alike.
[[nodiscard]] bool check_collectives(Session& session);
/// Prints a table of sizes: time and bandwidth of allreduce as NCCL's proxy would see them. Returns false if CollNet is
/// off.
[[nodiscard]] bool measure_collectives(Session& session);

}  // namespace tributary::cli::nccl_check
