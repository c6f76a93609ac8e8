#pragma once
// Chooses the addresses of this host that other ranks are told.
#include <string>
#include <string_view>
#include <vector>

#include "client/api/settings.h"
#include "client/api/transports.h"
#include "tributary/protocol/error.h"

namespace tributary::client {

/// The address where rank 0 listens, the first of:
///   1. the address of `interface_name`, if it is not empty;
///   2. 127.0.0.1 (or ::1), if MASTER_ADDR names the loopback: then all ranks are on this host, and the loopback works
///      even if its interfaces fail;
///   3. the address of the first interface that is up and no loopback: IPv4 before global IPv6; interfaces of
///      containers and virtual machines (docker*, br-*, virbr*, veth*, cni*) last, because other hosts cannot reach
///      them;
///   4. 127.0.0.1.
[[nodiscard]] Result<std::string> address_to_advertise(const std::string& interface_name,
                                                       const Environment& environment);

/// The RDMA addresses of this host that a rank uses: it listens at the first, and its lanes leave by all of them in
/// turn. They belong to the devices that the settings name, or to the named interface alone, or to the devices nearest
/// to the GPU in use or the NUMA node. The nearest devices begin with another one for each LOCAL_RANK, so that the
/// ranks of a host share the devices.
[[nodiscard]] Result<std::vector<std::string>> rdma_addresses(const ClientSettings& settings,
                                                              const Environment& environment);

/// The settings for RDMA, without rails, which rdma_addresses() chooses.
[[nodiscard]] RdmaWish rdma_wish(const ClientSettings& settings);

/// Returns the address by which this host would talk to `host`, a numeric address; a rank listens there for its peers.
/// Empty if the system knows no route.
[[nodiscard]] std::string address_towards(const std::string& host);

}  // namespace tributary::client
