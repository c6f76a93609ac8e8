#pragma once
// Uses the net table as NCCL's proxies do, on host memory.
#include "client/cli/nccl_check/session.h"

namespace tributary::cli::nccl_check {

/// Checks several connections between every two ranks: messages of all sizes, sends before their receives and after, up
/// to NCCL's number in flight. Every second rank closes them in another order. Throws Failure at the first wrong byte.
void check_messages(Session& session);
/// Measures latency and bandwidth from rank 0 to rank 1, beside a plain socket's.
void measure_messages(Session& session);

}  // namespace tributary::cli::nccl_check
