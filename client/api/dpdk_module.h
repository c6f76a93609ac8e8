#pragma once
// DPDK for ranks that own a device. It is in libtributary-dpdk.so, which this library loads on demand, so that other
// processes contain no DPDK.
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
  std::string device;     // DPDK's name, such as "net_af_packet0,iface=eth1" or "0000:3b:00.0"
  std::string addresses;  // this host's addresses on the device, with prefix length, separated by commas
  std::string gateways;   // routers to addresses that are not on the link
  std::string gpu;        // the PCI address of the GPU into whose memory packets come; empty: host memory
  /// Returns the device's first address, without the prefix length.
  [[nodiscard]] std::string address() const;
};

/// Checks the module. Errc::unsupported: it is missing or has another version; the error says what to do.
[[nodiscard]] Status dpdk_available(const DpdkRank& rank);
/// Makes a transport over the device. The first call opens the device, which stays open until the process ends. The
/// device has one queue, so there is only one transport at a time.
[[nodiscard]] Result<std::unique_ptr<transport::Transport>> make_dpdk_transport(
    const DpdkRank& rank, const UdpRank& packets, std::shared_ptr<transport::LinkKeys> keys);

/// The functions of the module. It comes from the same build, so C++ types may cross.
using DpdkModuleMake = Result<std::unique_ptr<transport::Transport>> (*)(const DpdkRank& rank, const UdpRank& packets,
                                                                         std::shared_ptr<transport::LinkKeys> keys);
struct DpdkModule : service::ModuleTable {
  DpdkModuleMake make;
  /// Returns sentences for the log about parts that work, but not as well as they could; each sentence once.
  std::vector<std::string> (*take_notes)();
};
inline constexpr const char* kDpdkModuleSymbol = "tributary_dpdk_module";

}  // namespace tributary::client
