#pragma once
// The output of DPDK and its drivers. This code keeps the last lines for this project's error messages; in the
// program's own output they would stand without context.
#include <cstdio>
#include <string>

namespace tributary::transport::dpdk {

/// Catches the output from now on. Called once in a process and never undone, because drivers print until the end.
void capture_driver_log();
/// The last lines since the previous call, joined; for the end of an error message.
[[nodiscard]] std::string take_driver_log();

}  // namespace tributary::transport::dpdk
