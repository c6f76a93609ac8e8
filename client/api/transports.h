#pragma once
// Which transport a communicator runs on.
#include <memory>
#include <string>
#include <vector>

#include "client/api/dpdk_module.h"
#include "client/api/udp_rank.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/rdma_path.h"

namespace tributary::client {

/// The first of `wanted` that is built, or the library's choice for an empty list; Errc::unsupported if there is none.
[[nodiscard]] Result<std::string> choose_transport(const std::vector<std::string>& wanted, const DpdkRank& dpdk);
/// What "verbs" is told.
struct RdmaWish {
  std::vector<std::string> rails;  // addresses of this host's ports, lane by lane; none: own_address alone
  std::uint32_t queue_pairs = 1;
  transport::RdmaPath path{};
  bool on_demand = false;           // memory is registered on demand, where the device can
  transport::Duration busy_poll{};  // who waits spins for so long before it sleeps
};
/// One of that name: "tcp", "udp", "verbs" for RDMA, or "dpdk" over the device that `dpdk` names. `own_address`,
/// numeric, is where it listens; over UDP it is also the source of its connections, and over RDMA it says which
/// device's connections it makes. `shared_memory`: "tcp" talks to processes of this host through memory. `keys`: what
/// "udp" and "dpdk" seal their packets with, and connections over "verbs" are proved by; may be nullptr.
[[nodiscard]] Result<std::unique_ptr<transport::Transport>> make_transport(
    const std::string& name, const std::string& own_address, bool shared_memory,
    std::shared_ptr<transport::LinkKeys> keys, const DpdkRank& dpdk, const RdmaWish& rdma, const UdpRank& udp);
/// What its connections are sealed with. Errc::bad_config where the transport of that name cannot: it has no packets of
/// ours.
[[nodiscard]] Result<std::shared_ptr<transport::LinkKeys>> make_link_keys(const std::string& name,
                                                                          PacketSecurity security);

}  // namespace tributary::client
