#pragma once
// Which of this host's addresses the other ranks are told.
#include <string>
#include <string_view>
#include <vector>

#include "client/api/settings.h"
#include "client/api/transports.h"
#include "tributary/protocol/error.h"

namespace tributary::client {

/// The address where rank 0 listens, the first of:
///   1. `interface_name`'s, when it is not empty;
///   2. 127.0.0.1 (or ::1), when MASTER_ADDR names the loopback: then all ranks are on this host, and the loopback
///   works
///      whatever becomes of its interfaces;
///   3. that of the first interface that is up and no loopback: IPv4 before global IPv6, and those of containers and
///      virtual machines (docker*, br-*, virbr*, veth*, cni*) last, because other hosts cannot reach them;
///   4. 127.0.0.1.
[[nodiscard]] Result<std::string> address_to_advertise(const std::string& interface_name,
                                                       const Environment& environment);

/// By which of this host's RDMA addresses a rank talks: it listens at the first, and its lanes leave by all of them in
/// turn. Those of the devices that are named in the settings; or the named interface's alone; or those nearest to the
/// GPU in use or the NUMA node, beginning with the one whose turn it is by LOCAL_RANK, so that the ranks of a host
/// share its devices out.
[[nodiscard]] Result<std::vector<std::string>> rdma_addresses(const ClientSettings& settings,
                                                              const Environment& environment);

/// What the settings say of RDMA; without rails, which are rdma_addresses()' to say.
[[nodiscard]] RdmaWish rdma_wish(const ClientSettings& settings);

/// The address by which this host would talk to `host`, a numeric address: where a rank listens for its peers. Empty
/// when the system does not know.
[[nodiscard]] std::string address_towards(const std::string& host);

}  // namespace tributary::client
