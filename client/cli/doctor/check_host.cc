#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {

Findings check_host(const HostView& host) {
  Findings all = check_network(host.system);
  append(all, check_rdma(host.system, host.transports));
  append(all, check_roce(host.system, host.ask_qos));
  append(all, check_pci(host.system));
  append(all, check_memory(host.system));
  append(all, check_processor(host.system));
  append(all, check_gpus(host.system, host.gpus));
  append(all, check_peer_memory(host.system));
  append(all, check_storage(host.system));
  append(all, check_nccl(host.system));
  return all;
}

}  // namespace tributary::cli::doctor
