#pragma once
// Chooses this host's addresses for other ranks.
#include <string>
#include <string_view>
#include <vector>

#include "client/api/settings.h"
#include "client/api/transports.h"
#include "tributary/protocol/error.h"

namespace tributary::client {

/// Returns the address where rank 0 listens, the first of:
///   1. the address of `interface_name`, if it is not empty;
///   2. 127.0.0.1 (or ::1), if MASTER_ADDR names the loopback: all ranks are then on this host, and the loopback works
///      even if the host's other interfaces fail;
///   3. the address of the first interface that is up and is not the loopback: IPv4 before global IPv6; interfaces of
///      containers and virtual machines (docker*, br-*, virbr*, veth*, cni*) come last, because other hosts cannot
///      reach them;
///   4. 127.0.0.1.
[[nodiscard]] Result<std::string> address_to_advertise(const std::string& interface_name,
                                                       const Environment& environment);

/// Returns the RDMA addresses of this host for a rank: it listens at the first address, and its lanes use all addresses
/// in turn. If the settings name devices or an interface, only their addresses count. Otherwise the nearest devices
/// count: nearest to the GPU in use, or to the NUMA node. For each LOCAL_RANK this list begins with another device, so
/// that the ranks of a host share the devices.
[[nodiscard]] Result<std::vector<std::string>> rdma_addresses(const ClientSettings& settings,
                                                              const Environment& environment);

/// Returns the settings for RDMA without the rails; rdma_addresses() chooses the rails.
[[nodiscard]] RdmaWish rdma_wish(const ClientSettings& settings);

/// Returns the own address from which this host would send to `host`, a numeric address; a rank listens there for its
/// peers. Empty if the system knows no route.
[[nodiscard]] std::string address_towards(const std::string& host);

}  // namespace tributary::client
