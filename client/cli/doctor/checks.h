#pragma once
// The doctor's checks. Each check is a function of its arguments, so that tests can check any host. Checks read the
// kernel's files through a SystemTree, which may be a recorded tree.
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

/// Checks interfaces and transports.
[[nodiscard]] Findings check_network(const SystemTree& system);
/// Checks RDMA devices and their ports. `wanted`: the value of TRIBUTARY_TRANSPORT.
[[nodiscard]] Findings check_rdma(const SystemTree& system, const std::string& wanted);
/// Checks trust mode, PFC, ECN and traffic class of every active RoCE port.
[[nodiscard]] Findings check_roce(const SystemTree& system, const AskQos& ask_qos);
/// Checks links of GPUs and RDMA devices, BAR sizes, the distances and ACS between them, and the IOMMU.
[[nodiscard]] Findings check_pci(const SystemTree& system);
/// Checks locked memory and huge pages.
[[nodiscard]] Findings check_memory(const SystemTree& system);
/// Checks the governor and the NUMA placement.
[[nodiscard]] Findings check_processor(const SystemTree& system);
/// Check the way from NVIDIA GPUs' memory to RDMA devices, and to storage.
[[nodiscard]] Findings check_peer_memory(const SystemTree& system);
[[nodiscard]] Findings check_storage(const SystemTree& system);
/// Checks NCCL's version, and the plugin that NCCL would load.
[[nodiscard]] Findings check_nccl(const SystemTree& system);

/// The CUDA driver's answers; without a driver, the reason why it is missing.
struct GpuReport {
  std::string missing;  // the reason; empty: a driver works
  int driver_version = 0;
  std::vector<client::gpu::GpuFacts> gpus;
};
[[nodiscard]] GpuReport ask_cuda();
[[nodiscard]] Findings check_gpus(const SystemTree& system, const GpuReport& report);

/// The facts of a host for all checks that ask no other host.
struct HostView {
  SystemTree system;
  AskQos ask_qos;
  std::string transports;  // value of TRIBUTARY_TRANSPORT
  GpuReport gpus;
};
[[nodiscard]] Findings check_host(const HostView& host);

}  // namespace tributary::cli::doctor
