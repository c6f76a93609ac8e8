#pragma once
// Uses the net table as NCCL's proxies do, with host memory.
#include "client/cli/nccl_check/session.h"

namespace tributary::cli::nccl_check {

/// Checks several connections between every two ranks: messages of all sizes, sends before and after their receives, up
/// to NCCL's number in flight. Every second rank closes the connections in another order. Throws Failure at the first
/// wrong byte.
void check_messages(Session& session);
/// Measures latency and bandwidth from rank 0 to rank 1: of the plugin, and of a plain socket.
void measure_messages(Session& session);

}  // namespace tributary::cli::nccl_check
