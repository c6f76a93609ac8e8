#pragma once
// The settings that the plugin itself reads: variables of its own, and some of libtributary's settings, which it takes
// from where libtributary takes them (docs/client.md): the variable, else the file that TRIBUTARY_CONFIG names.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/plugins/nccl/interface_filter.h"
#include "tributary/protocol/link_secret.h"

namespace tributary::nccl {

/// The collectives that CollNet offers besides the allreduce, which it always offers.
struct CollectiveChoice {
  bool all_gather = true;
  bool reduce_scatter = true;
  std::string unknown;  // a word of TRIBUTARY_NCCL_COLLECTIVES that names no collective; empty if there is none
};

struct PluginSettings {
  std::vector<std::string> interfaces;              // TRIBUTARY_IFNAME, names with commas between; empty: all usable
  InterfaceFilter nccl_interfaces{""};              // NCCL_SOCKET_IFNAME, if TRIBUTARY_IFNAME is not set
  std::chrono::milliseconds timeout{300'000};       // TRIBUTARY_TIMEOUT, in seconds
  std::chrono::milliseconds connect_limit{30'000};  // TRIBUTARY_NCCL_CONNECT_TIMEOUT, in seconds; not above `timeout`
  std::string metrics_file;     // TRIBUTARY_NCCL_METRICS; %p stands for the process's number; empty: no file
  bool tuner = true;            // TRIBUTARY_NCCL_TUNER=0 turns it off
  std::string tuner_file;       // TRIBUTARY_NCCL_TUNER_FILE; empty: the cost model
  std::uint64_t link_rate = 0;  // TRIBUTARY_LINK_RATE, in bits per second; 0: not set
  PacketSecurity security = PacketSecurity::off;  // TRIBUTARY_SECURITY, or TRIBUTARY_PACKET_SECURITY
};

/// Reads TRIBUTARY_NCCL_COLLECTIVES: allreduce, allgather and reducescatter, with commas between. If it is not set,
/// CollNet offers all three.
[[nodiscard]] CollectiveChoice collective_choice();

/// Returns the settings. The first call reads the variables and the file.
[[nodiscard]] const PluginSettings& settings();
[[nodiscard]] PluginSettings read_settings();

}  // namespace tributary::nccl
