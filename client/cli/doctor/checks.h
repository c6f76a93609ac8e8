#pragma once
// What the doctor looks at. Each check is a function of what it is given, so that tests can show it any host.
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
