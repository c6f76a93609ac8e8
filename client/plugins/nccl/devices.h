#pragma once
// The network interfaces that NCCL is told of. NCCL matches net and CollNet devices by name and index.
#include <cstdint>
#include <string>
#include <vector>

#include "client/plugins/nccl/abi/properties.h"
#include "client/plugins/nccl/socket_counts.h"

namespace tributary::nccl {

struct NetDevice {
  std::string name;      // of the interface
  std::string address;   // numeric, IPv4 rather than IPv6
  std::string pci_path;  // in /sys; empty for an interface that is no PCI device
  std::uint64_t guid = 0;
  int speed_mbps = 0;
  int port = 1;
  std::string rdma_device;     // whose port this is; empty where messages do not go over verbs
  SocketCounts socket_counts;  // of each connection over TCP that listens here
};

/// Found once: all interfaces that are up, have a link, have an address that others can reach, and are neither the
/// loopback nor a container's or virtual machine's bridge; or those that TRIBUTARY_IFNAME names, in its order, else
/// those that NCCL_SOCKET_IFNAME admits. The loopback where there is nothing else. Over verbs, those of them that have
/// an active RDMA port, whose speed, GUID and number count. Lives as long as the process, as NCCL keeps pointers to the
/// names.
[[nodiscard]] const std::vector<NetDevice>& devices();

/// nullptr for an index that is none.
[[nodiscard]] const NetDevice* device_at(int index);

/// CollNet's devices, on every host equally many: from 2.30.3 on NCCL ends a job whose hosts report different numbers.
inline constexpr int kCollectiveDevices = 8;

/// The net device of that index, or the first one again where a host has fewer: NCCL knows devices by their names, and
/// sees one device more often. nullptr for an index that is none.
[[nodiscard]] const NetDevice* collective_device_at(int index);

inline constexpr int kReceivesMax = 1;  // grouped receives: see p2p/receive_comm.h
inline constexpr int kCommsMax = 65536;
inline constexpr std::size_t kBytesMax = std::size_t{1} << 30;  // of one transfer; its size must fit an int in test()

/// Fills what the version's layout has.
template <class Properties>
void describe(const NetDevice& device, int index, Properties& to) {
  to = {};
  to.name = const_cast<char*>(device.name.c_str());  // NCCL reads it
  to.pci_path = device.pci_path.empty() ? nullptr : const_cast<char*>(device.pci_path.c_str());
  to.guid = device.guid;
  to.pointer_support = abi::kPointerHost;
  to.speed_mbps = device.speed_mbps;
  to.port = device.port;
  to.latency_us = 0;  // not known: NCCL takes what it assumes of a network
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
