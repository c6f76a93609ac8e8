#pragma once
// What the plugin itself reads from the environment; libtributary reads the rest (docs/client.md).
#include <chrono>
#include <string>
#include <vector>

#include "client/plugins/nccl/interface_filter.h"

namespace tributary::nccl {

struct PluginSettings {
  std::vector<std::string> interfaces;         // TRIBUTARY_IFNAME, separated by commas; empty: all that are usable
  InterfaceFilter nccl_interfaces{""};         // NCCL_SOCKET_IFNAME, where TRIBUTARY_IFNAME is not set
  std::chrono::milliseconds timeout{300'000};  // TRIBUTARY_TIMEOUT, in seconds
  std::string metrics_file;  // TRIBUTARY_NCCL_METRICS, %p as the process's number; empty: none is written
  bool tuner = true;         // TRIBUTARY_NCCL_TUNER=0 turns it off
  std::string tuner_file;    // TRIBUTARY_NCCL_TUNER_FILE; empty: the built-in table
};

/// Read once, at the first use.
[[nodiscard]] const PluginSettings& settings();

}  // namespace tributary::nccl
