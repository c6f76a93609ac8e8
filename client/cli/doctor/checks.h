#pragma once
// The doctor's checks. Each is a function of its arguments, so that tests can show it any host.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/doctor/finding.h"
#include "client/gpu/path_choice.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/transport/rails.h"

namespace tributary::cli::doctor {

using transport::active_ports;
using transport::Distance;
using transport::distance;
using transport::RdmaPort;
using transport::SystemTree;
using transport::to_string;

/// Interfaces and transports. `wanted`: TRIBUTARY_TRANSPORT.
[[nodiscard]] Findings check_network(const SystemTree& system);
[[nodiscard]] Findings check_rdma(const SystemTree& system, const std::string& wanted);

/// `locked_bytes` is this process's limit of locked memory; nullopt: unlimited.
[[nodiscard]] Findings check_memory(const SystemTree& system, std::optional<std::uint64_t> locked_bytes);

/// The CUDA driver's answers; without a driver, why it is missing.
struct GpuReport {
  std::string missing;  // empty: there is a working driver
  int driver_version = 0;
  std::vector<client::gpu::GpuFacts> gpus;
};
[[nodiscard]] GpuReport ask_cuda();
[[nodiscard]] Findings check_gpus(const SystemTree& system, const GpuReport& report);

/// The state of the manager and its aggregators, as far as this host reaches them.
struct ServiceReport {
  std::string url;      // empty: no manager is configured
  std::string trouble;  // empty: the manager answered
  std::string version;
  struct Aggregator {
    std::string name, state, data;
    std::string trouble;  // why this host could not connect to it; empty: it could
  };
  std::vector<Aggregator> aggregators;
};
[[nodiscard]] Findings check_service(const ServiceReport& report);

}  // namespace tributary::cli::doctor
