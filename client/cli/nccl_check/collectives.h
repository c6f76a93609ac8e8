#pragma once
// Uses CollNet as NCCL's proxies do, with host memory.
#include "client/cli/nccl_check/session.h"

namespace tributary::cli::nccl_check {

/// Checks several communicators at once: every type and operator, many requests in flight, windows, flushes, and
/// registrations in between. Every second rank ends the communicators in another order. Throws Failure at the first
/// wrong element. Returns false, on all ranks, if CollNet is off.
[[nodiscard]] bool check_collectives(Session& session);
/// Prints a table by size: times and bandwidths of allreduce for NCCL's proxy. Returns false if CollNet is off.
[[nodiscard]] bool measure_collectives(Session& session);

}  // namespace tributary::cli::nccl_check
