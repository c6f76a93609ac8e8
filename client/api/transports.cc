#include "client/api/transports.h"

#include "tributary/transport/io_threads.h"
#include "tributary/transport/udp.h"
#include "tributary/transport/verbs_beside_tcp.h"

namespace tributary::client {

Result<std::string> choose_transport(const std::vector<std::string>& wanted, const DpdkRank& dpdk) {
  if (wanted.empty()) return "tcp";
  std::string list;
  std::string why;
  for (const std::string& name : wanted) {
    if (name == "tcp" || name == "udp") return name;
    list += (list.empty() ? "" : ", ") + name;
    if (name == "dpdk") {
      const Status available = dpdk_available(dpdk);
      if (available) return name;
      why += "; dpdk cannot be used: " + available.error().message;
    }
    if (name != "verbs") continue;
    const Status verbs = transport::verbs_available();
    if (verbs) return name;
    why += "; verbs cannot be used: " + verbs.error().message;
  }
  return fail(Errc::unsupported, "none of the transports in TRIBUTARY_TRANSPORT (" + list +
                                     ") can be used here; tcp and udp always can" + why);
}

Result<std::unique_ptr<transport::Transport>> make_transport(const std::string& name, const std::string& own_address,
                                                             const TcpWish& wish,
                                                             std::shared_ptr<transport::LinkKeys> keys,
                                                             const DpdkRank& dpdk, const RdmaWish& rdma,
                                                             const UdpRank& udp) {
  if (name == "dpdk") return make_dpdk_transport(dpdk, udp, std::move(keys));
  if (name == "udp") {
    return std::make_unique<transport::UdpTransport>(
        transport::UdpSettings{.datagram_bytes_max = udp.datagram_bytes_max,
                               .peer_timeout = udp.peer_timeout,
                               .delay_target = udp.delay_target,
                               .ecn = udp.ecn,
                               .dscp = udp.dscp,
                               .busy_poll = udp.busy_poll,
                               .bind_address = own_address,
                               .keys = std::move(keys)});
  }
  // Switch off TCP's own time-out. It also counts while the other side has closed its window: a rank that comes late to
  // a receive, for example after a checkpoint, is not lost. The communicator finds lost ranks within its time-out.
  transport::TcpSettings tcp;
  tcp.user_timeout = {};
  // Allow one connection from each other rank: rank 0 accepts them, and in an all_to_all every rank. arrivals.h
  // limits the number of strangers.
  tcp.connections_max = 4 * kRanksMax;
  if (keys != nullptr && keys->least() != PacketSecurity::off) tcp.keys = keys;
  if (name != "verbs") {
    const transport::NearSettings near{.tcp = tcp, .shm = {}, .shared_memory = wish.shared_memory};
    if (wish.io_threads > 1) return std::make_unique<transport::IoThreadsTransport>(near, wish.io_threads);
    return std::make_unique<transport::NearTransport>(near);
  }
  return transport::VerbsBesideTcp::create({.keys = std::move(keys),
                                            .queue_pairs = rdma.queue_pairs,
                                            .on_demand = rdma.on_demand,
                                            .busy_poll = rdma.busy_poll,
                                            .path = rdma.path,
                                            .bind_address = own_address,
                                            .rails = rdma.rails},
                                           tcp);
}

std::shared_ptr<transport::LinkKeys> make_link_keys(const std::string& name, PacketSecurity security) {
  return std::make_shared<transport::LinkKeys>(security, name == "verbs");
}

}  // namespace tributary::client
