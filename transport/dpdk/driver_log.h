#pragma once
// The output of DPDK and its drivers. This code keeps the last lines for Tributary's error messages; in the program's
// own output the lines would have no context.
#include <cstdio>
#include <string>

namespace tributary::transport::dpdk {

/// Keeps the output from this call on. Called once in a process and never undone, because drivers print until the end.
void capture_driver_log();
/// Returns the last lines since the previous call as one text, for the end of an error message.
[[nodiscard]] std::string take_driver_log();

}  // namespace tributary::transport::dpdk
