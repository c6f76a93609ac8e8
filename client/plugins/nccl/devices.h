#pragma once
// The network interfaces that the plugin reports to NCCL. NCCL matches net and CollNet devices by name and index.
#include <cstdint>
#include <string>
#include <vector>

#include "client/plugins/nccl/abi/properties.h"
#include "client/plugins/nccl/socket_counts.h"

namespace tributary::nccl {

struct NetDevice {
  std::string name;      // the interface's
  std::string address;   // numeric, IPv4 rather than IPv6
  std::string pci_path;  // in /sys; empty for an interface that is not a PCI device
  std::uint64_t guid = 0;
  int speed_mbps = 0;
  int port = 1;
  std::string rdma_device;     // the RDMA device of this port; empty if messages do not go over verbs
  SocketCounts socket_counts;  // sockets of each connection over TCP that listens here
};

/// Returns the devices, which are found once: all interfaces that are up, have a link and an address that other hosts
/// can reach, and are neither the loopback nor a bridge of containers or virtual machines; or those that
/// TRIBUTARY_IFNAME names, in its order; else those that NCCL_SOCKET_IFNAME admits. The loopback if there is no other.
/// Over verbs, only interfaces with an active RDMA port, whose speed, GUID and number are reported. Lives as long as
/// the process, because NCCL keeps pointers to the names.
[[nodiscard]] const std::vector<NetDevice>& devices();

/// nullptr if there is no device with this index.
[[nodiscard]] const NetDevice* device_at(int index);

/// The number of CollNet's devices, equal on every host: NCCL 2.30.3 and later end a job whose hosts report different
/// numbers.
inline constexpr int kCollectiveDevices = 8;

/// Returns the net device of that index; a host with fewer devices repeats its first one. NCCL knows devices by their
/// names, so it sees one device several times. nullptr if the index is out of range.
[[nodiscard]] const NetDevice* collective_device_at(int index);

inline constexpr int kReceivesMax = 1;  // grouped receives: see p2p/receive_comm.h
inline constexpr int kCommsMax = 65536;
inline constexpr std::size_t kBytesMax = std::size_t{1} << 30;  // most bytes of one transfer, whose size must fit an
                                                                // int in test()

/// Fills the members that the version's layout has.
template <class Properties>
void describe(const NetDevice& device, int index, Properties& to) {
  to = {};
  to.name = const_cast<char*>(device.name.c_str());  // NCCL reads it
  to.pci_path = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  to.guid = device.guid;
  to.pointer_support = abi::kPointerHost;
  to.speed_mbps = device.speed_mbps;
  to.port = device.port;
  to.latency_us = 0;  // unknown: NCCL uses its own assumption for a network
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
