#pragma once
// The doctor's checks. Each is a function of its arguments, so that tests can show it any host. They read the kernel's
// files through a SystemTree, which may be a recorded tree.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/doctor/finding.h"
#include "client/cli/doctor/qos.h"
#include "client/gpu/path_choice.h"
#include "tributary/transport/rails.h"

namespace tributary::cli::doctor {

using transport::SystemTree;

/// Interfaces and transports.
[[nodiscard]] Findings check_network(const SystemTree& system);
/// RDMA devices and their ports. `wanted`: TRIBUTARY_TRANSPORT.
[[nodiscard]] Findings check_rdma(const SystemTree& system, const std::string& wanted);
/// Trust mode, PFC, ECN and traffic class of every active RoCE port.
[[nodiscard]] Findings check_roce(const SystemTree& system, const AskQos& ask_qos);
/// Links of GPUs and RDMA devices, BAR sizes, distances, ACS between the two, the IOMMU.
[[nodiscard]] Findings check_pci(const SystemTree& system);
/// Locked memory, huge pages.
[[nodiscard]] Findings check_memory(const SystemTree& system);
/// Governor, NUMA placement.
[[nodiscard]] Findings check_processor(const SystemTree& system);
/// The way of NVIDIA GPUs' memory to RDMA devices, and to storage.
[[nodiscard]] Findings check_peer_memory(const SystemTree& system);
[[nodiscard]] Findings check_storage(const SystemTree& system);
/// NCCL's version, and the plugin that it would load.
[[nodiscard]] Findings check_nccl(const SystemTree& system);

/// The CUDA driver's answers; without a driver, why it is missing.
struct GpuReport {
  std::string missing;  // empty: there is a working driver
  int driver_version = 0;
  std::vector<client::gpu::GpuFacts> gpus;
};
[[nodiscard]] GpuReport ask_cuda();
[[nodiscard]] Findings check_gpus(const SystemTree& system, const GpuReport& report);

/// All that can be said of a host without asking another one.
struct HostView {
  SystemTree system;
  AskQos ask_qos;
  std::string transports;  // TRIBUTARY_TRANSPORT
  GpuReport gpus;
};
[[nodiscard]] Findings check_host(const HostView& host);

}  // namespace tributary::cli::doctor
