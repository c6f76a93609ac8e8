#pragma once
// DPDK for ranks that own a device: libtributary-dpdk.so, which is loaded on demand, so that other processes have no
// DPDK in them.
#include <memory>
#include <string>
#include <vector>

#include "client/api/udp_rank.h"
#include "service-kit/module.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/link_keys.h"

namespace tributary::client {

/// The device of this process, from the settings.
struct DpdkRank {
  std::string device;     // as DPDK names it: "net_af_packet0,iface=eth1", "0000:3b:00.0"
  std::string addresses;  // this host's addresses on it, with prefix length, separated by commas
  std::string gateways;   // routers to addresses that are not on the link
  std::string gpu;        // the PCI address of the GPU into whose memory packets come; empty: host memory
  /// Its first address, without the prefix length.
  [[nodiscard]] std::string address() const;
};

/// Errc::unsupported, with what to do, if the module is missing or has another version.
[[nodiscard]] Status dpdk_available(const DpdkRank& rank);
/// Makes a transport over the device, which is opened for the first one and stays open until the process ends. The
/// device has one queue, so there is one transport at a time.
[[nodiscard]] Result<std::unique_ptr<transport::Transport>> make_dpdk_transport(
    const DpdkRank& rank, const UdpRank& packets, std::shared_ptr<transport::LinkKeys> keys);

/// The functions of the module. It comes from the same build, so C++ types may cross.
using DpdkModuleMake = Result<std::unique_ptr<transport::Transport>> (*)(const DpdkRank& rank, const UdpRank& packets,
                                                                         std::shared_ptr<transport::LinkKeys> keys);
struct DpdkModule : service::ModuleTable {
  DpdkModuleMake make;
  /// Returns facts about things that work, but not as well as they could, for the log; each sentence once.
  std::vector<std::string> (*take_notes)();
};
inline constexpr const char* kDpdkModuleSymbol = "tributary_dpdk_module";

}  // namespace tributary::client
