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

/// Returns the first transport of `wanted` that is built and can be used here, or the library's choice for an empty
/// list. Errc::unsupported: the list has none.
[[nodiscard]] Result<std::string> choose_transport(const std::vector<std::string>& wanted, const DpdkRank& dpdk);
/// Parameters of the transport "verbs".
struct RdmaWish {
  std::vector<std::string> rails;  // by lane: address of this host's port; empty: only own_address
  std::uint32_t queue_pairs = 1;
  transport::RdmaPath path{};
  bool on_demand = false;           // register memory on demand, if the device supports this
  transport::Duration busy_poll{};  // time for which a waiting thread spins before it sleeps
};
/// Parameters of the transport "tcp".
struct TcpWish {
  bool shared_memory = true;  // connects to processes of this host through memory
  std::uint32_t io_threads =
      1;  // number of threads that read and write; 1: only the thread that drives the transport does
};
/// Makes the transport with this name: "tcp", "udp", "verbs" for RDMA, or "dpdk" over the device that `dpdk` names.
/// It listens at the numeric address `own_address`. Over UDP this is also the source of its connections; over RDMA it
/// chooses the device that makes connections.
/// All of them seal with `keys`, which may be nullptr; "verbs" also proves its connections by `keys`.
[[nodiscard]] Result<std::unique_ptr<transport::Transport>> make_transport(
    const std::string& name, const std::string& own_address, const TcpWish& wish,
    std::shared_ptr<transport::LinkKeys> keys, const DpdkRank& dpdk, const RdmaWish& rdma, const UdpRank& udp);
/// Makes the keys for the transport's connections.
[[nodiscard]] std::shared_ptr<transport::LinkKeys> make_link_keys(const std::string& name, PacketSecurity security);

}  // namespace tributary::client
