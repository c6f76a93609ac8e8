#pragma once
// Chooses and makes the transport of a communicator.
#include <memory>
#include <string>
#include <vector>

#include "client/api/dpdk_module.h"
#include "client/api/udp_rank.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/rdma_path.h"

namespace tributary::client {

/// Returns the first of `wanted` that is built, or the library's choice for an empty list; Errc::unsupported if there
/// is none.
[[nodiscard]] Result<std::string> choose_transport(const std::vector<std::string>& wanted, const DpdkRank& dpdk);
/// The parameters of the transport "verbs".
struct RdmaWish {
  std::vector<std::string> rails;  // addresses of this host's ports, lane by lane; empty: own_address alone
  std::uint32_t queue_pairs = 1;
  transport::RdmaPath path{};
  bool on_demand = false;           // memory is registered on demand, where the device can
  transport::Duration busy_poll{};  // how long a waiting thread spins before it sleeps
};
/// The parameters of the transport "tcp".
struct TcpWish {
  bool shared_memory = true;  // it talks to processes of this host through memory
  std::uint32_t io_threads =
      1;  // 1: the thread that drives it reads and writes itself; more: this number of threads does
};
/// Makes the transport of that name: "tcp", "udp", "verbs" for RDMA, or "dpdk" over the device that `dpdk` names.
/// `own_address`, numeric, is where it listens; over UDP it is also the source of its connections, and over RDMA it
/// chooses the device that makes connections.
/// "udp" and "dpdk" seal their packets with `keys`, and "verbs" proves its connections by them; they may be nullptr.
[[nodiscard]] Result<std::unique_ptr<transport::Transport>> make_transport(
    const std::string& name, const std::string& own_address, const TcpWish& wish,
    std::shared_ptr<transport::LinkKeys> keys, const DpdkRank& dpdk, const RdmaWish& rdma, const UdpRank& udp);
/// Makes the keys for the transport's packets. Errc::bad_config if that transport does not send Tributary's packets.
[[nodiscard]] Result<std::shared_ptr<transport::LinkKeys>> make_link_keys(const std::string& name,
                                                                          PacketSecurity security);

}  // namespace tributary::client
