#pragma once
// The output of DPDK and its drivers: the last lines are kept for this project's error messages, instead of standing in
// the program's output without context.
#include <cstdio>
#include <string>

namespace tributary::transport::dpdk {

/// From now on. Once in a process; never undone, because drivers print until the end.
void capture_driver_log();
/// The last lines since the previous call, joined; for the end of an error message.
[[nodiscard]] std::string take_driver_log();

}  // namespace tributary::transport::dpdk
