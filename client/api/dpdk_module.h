#pragma once
// DPDK for ranks that own a device: libtributary-dpdk.so, which is loaded when it is asked for, so that nobody else's
// process has DPDK in it.
#include <memory>
#include <string>
#include <vector>

#include "client/api/udp_rank.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/link_keys.h"

namespace tributary::client {

/// The device of this process, as settings have it.
struct DpdkRank {
  std::string device;     // as DPDK names it: "net_af_packet0,iface=eth1", "0000:3b:00.0"
  std::string addresses;  // this host's there, with prefix length, separated by commas
  std::string gateways;   // for what is not on the link
  std::string gpu;        // the PCI address of the one whose memory packets come into; empty: the host's
  /// Its first address, without the prefix length.
  [[nodiscard]] std::string address() const;
};

/// Errc::unsupported: the module is not there, or of another version, with what to do.
[[nodiscard]] Status dpdk_available(const DpdkRank& rank);
/// A transport over the device, which is opened with the first one and stays until the process ends. It has one queue,
/// so one transport at a time.
[[nodiscard]] Result<std::unique_ptr<transport::Transport>> make_dpdk_transport(
    const DpdkRank& rank, const UdpRank& packets, std::shared_ptr<transport::LinkKeys> keys);

/// What the module gives: of the same build, so C++ types may cross.
using DpdkModuleMake = Result<std::unique_ptr<transport::Transport>> (*)(const DpdkRank& rank, const UdpRank& packets,
                                                                         std::shared_ptr<transport::LinkKeys> keys);
struct DpdkModule {
  const char* version;
  DpdkModuleMake make;
  /// What works, and not as well as it could: for the log, each sentence once.
  std::vector<std::string> (*take_notes)();
};
inline constexpr const char* kDpdkModuleSymbol = "tributary_dpdk_module";

}  // namespace tributary::client
