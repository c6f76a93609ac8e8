#pragma once
// What the doctor looks at. Each check is a function of what it is given, so that tests can show it any host.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/doctor/finding.h"
#include "client/cli/doctor/system_tree.h"
#include "client/gpu/path_choice.h"
#include "tributary/protocol/descriptor.h"

namespace tributary::cli::doctor {

/// An RDMA port that is up.
struct RdmaPort {
  std::string device;
  int port = 0;
  bool ethernet = false;
};
[[nodiscard]] std::vector<RdmaPort> active_ports(const SystemTree& system);

/// Interfaces and transports. `wanted`: TRIBUTARY_TRANSPORT.
[[nodiscard]] Findings check_network(const SystemTree& system);
[[nodiscard]] Findings check_rdma(const SystemTree& system, const std::string& wanted);

/// `locked_bytes`: the limit of locked memory of this process; none: unlimited.
[[nodiscard]] Findings check_memory(const SystemTree& system, std::optional<std::uint64_t> locked_bytes);

/// What the CUDA driver said; without it, why not.
struct GpuReport {
  std::string missing;  // empty: there is a driver, which works
  int driver_version = 0;
  std::vector<client::gpu::GpuFacts> gpus;
};
[[nodiscard]] GpuReport ask_cuda();
[[nodiscard]] Findings check_gpus(const SystemTree& system, const GpuReport& report);

/// How far two devices of the PCI bus are from each other.
enum class Distance : std::uint8_t { same_switch, same_root, same_node, other_node, unknown };
/// By their folders below /sys/devices.
[[nodiscard]] Distance distance(const std::string& one, std::optional<std::int64_t> node_of_one,
                                const std::string& other, std::optional<std::int64_t> node_of_other);
[[nodiscard]] const char* to_string(Distance distance) noexcept;

/// The manager and its aggregators, as far as this host reaches them.
struct ServiceReport {
  std::string url;      // empty: none is configured
  std::string trouble;  // empty: it answered
  std::string version;
  struct Aggregator {
    std::string name, state, data;
    std::string trouble;  // of connecting to it; empty: it was reached
  };
  std::vector<Aggregator> aggregators;
};
[[nodiscard]] Findings check_service(const ServiceReport& report);

}  // namespace tributary::cli::doctor
