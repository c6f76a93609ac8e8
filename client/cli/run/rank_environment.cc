#include "client/cli/run/rank_environment.h"

namespace tributary::cli {
namespace {

/// Removes the variables of a launcher that started this process: the ranks belong to this process.
void forget_other_launchers(Environment& environment) {
  for (const char* name : {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID", "TRIBUTARY_MANAGER",
                           "TRIBUTARY_TOKEN_FILE", "TRIBUTARY_HOST_ID"}) {
    environment.erase(name);
  }
}

/// Sets the variables for a rank on its own host: the names of its only network device for all libraries. The ranks
/// must not use this machine's memory, because real hosts do not share memory.
void add_host(Environment& environment, const HostNetwork& network, std::uint32_t rank) {
  environment["LOCAL_RANK"] = "0";
  environment["LOCAL_WORLD_SIZE"] = "1";
  environment["MASTER_ADDR"] = network.address_of(host_of_rank(0));
  environment["TRIBUTARY_HOST_ID"] = host_of_rank(rank);
  // A virtual interface's driver knows no rate. NCCL's tuner asks for it.
  if (const std::uint64_t rate = network.rate_of(host_of_rank(rank)); rate >= 1'000'000)
    environment["TRIBUTARY_LINK_RATE"] = std::to_string(rate / 1'000'000) + "Mbit/s";
  for (const char* name : {"TRIBUTARY_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
    environment[name] = kHostDevice;
  for (const char* name : {"TRIBUTARY_LOCAL", "TRIBUTARY_SHM"}) environment[name] = "off";
}

}  // namespace

std::string host_of_rank(std::uint32_t rank) {
  return "worker-" + std::to_string(rank);
}

Environment rank_environment(const RunOptions& options, const LocalCluster* cluster, const HostNetwork* network,
                             std::uint16_t port, std::uint32_t rank) {
  Environment environment = current_environment();
  forget_other_launchers(environment);
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(options.ranks);
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = std::to_string(port);
  environment["TRIBUTARY_LANES"] = options.lanes == 0 ? "auto" : std::to_string(options.lanes);
  if (network != nullptr) add_host(environment, *network, rank);
  if (cluster != nullptr) cluster->add_to(environment, rank);
  return environment;
}

}  // namespace tributary::cli
