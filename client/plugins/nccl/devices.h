#pragma once
// The network interfaces that the plugin reports to NCCL. NCCL pairs net and CollNet devices by their names and
// indexes.
#include <cstdint>
#include <string>
#include <vector>

#include "client/plugins/nccl/abi/properties.h"
#include "client/plugins/nccl/socket_counts.h"

namespace tributary::nccl {

struct NetDevice {
  std::string name;       // name of the interface, or of a wrapped plugin's device
  std::string interface;  // interface for the collectives' connections; empty: the library chooses it
  std::string address;    // numeric address; IPv4 if the interface has both kinds
  std::string pci_path;   // folder in /sys; empty for an interface that is not a PCI device
  std::uint64_t guid = 0;
  int speed_mbps = 0;
  int port = 1;
  float latency_us = 0;  // 0: not known, and NCCL then assumes a network's latency
  int pointer_support = abi::kPointerHost;
  std::string rdma_device;     // RDMA device of this port; empty if messages do not go over verbs
  SocketCounts socket_counts;  // number of sockets per TCP connection that listens here
};

/// Returns the devices. The first call finds them: the interfaces that TRIBUTARY_IFNAME names, in its order; else the
/// interfaces that NCCL_SOCKET_IFNAME admits; else all interfaces that are up and have a link and an address that other
/// hosts can reach. The last list leaves out bridges of containers and virtual machines; it has the loopback only if it
/// has no other interface. Over verbs, only interfaces with an active RDMA port count; their speed, GUID and port
/// number are reported. The list lives until the process ends, because NCCL keeps pointers to the names.
[[nodiscard]] const std::vector<NetDevice>& devices();

/// Returns the device with this index, or nullptr if there is none.
[[nodiscard]] const NetDevice* device_at(int index);

/// The number of CollNet devices. It is equal on every host, because NCCL 2.30.3 and later end a job if hosts report
/// different numbers.
inline constexpr int kCollectiveDevices = 8;

/// Returns the net device for this index, or nullptr if the index is out of range: a device of the wrapped plugin if
/// there is one (wrapped/). A host with fewer devices repeats its first device: NCCL knows devices by their names, so
/// it sees that device several times.
[[nodiscard]] const NetDevice* collective_device_at(int index);

inline constexpr int kReceivesMax = 1;  // no grouped receives: see p2p/receive_comm.h
inline constexpr int kCommsMax = 65536;
inline constexpr std::size_t kBytesMax = std::size_t{1} << 30;  // most bytes of one transfer, whose size must fit an
                                                                // int in test()

/// Fills the members that this version's layout has.
template <class Properties>
void describe(const NetDevice& device, int index, Properties& to) {
  to = {};
  to.name = const_cast<char*>(device.name.c_str());  // NCCL only reads the name
  to.pci_path = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  to.guid = device.guid;
  to.pointer_support = device.pointer_support;
  to.speed_mbps = device.speed_mbps;
  to.port = device.port;
  to.latency_us = device.latency_us;
  to.comms_max = kCommsMax;
  to.receives_max = kReceivesMax;
  if constexpr (requires { to.virtual_device; }) {
    to.virtual_device.devices = 1;
    to.virtual_device.device[0] = index;
    to.p2p_bytes_max = to.collective_bytes_max = kBytesMax;
  }
  if constexpr (requires { to.multi_request_max; }) to.multi_request_max = 1;
  if constexpr (requires { to.rail; }) to.rail = to.plane = -1;
}

}  // namespace tributary::nccl
