// Checks GPUs, and their distance to RDMA devices.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {
namespace {

constexpr const char* kNvidia = "0x10de";

/// Counts display and 3D controllers of NVIDIA, with a driver or without.
std::size_t nvidia_devices(const SystemTree& system) {
  const auto devices = system.list("/sys/bus/pci/devices");
  return static_cast<std::size_t>(std::ranges::count_if(devices, [&](const std::string& id) {
    const std::string folder = "/sys/bus/pci/devices/" + id;
    return system.read(folder + "/vendor") == kNvidia &&
           system.read(folder + "/class").value_or("").starts_with("0x03");
  }));
}

Finding memory_of(const client::gpu::GpuFacts& gpu, const client::gpu::HostFacts& host, bool rdma) {
  Finding f{.part = "gpu", .what = fmt::format("GPU {} {}", gpu.device, gpu.bus_id)};
  f.says = fmt::format("{}; GPUDirect RDMA {}, dma-buf {}, nvidia_peermem {}", gpu.name, gpu.gpudirect ? "yes" : "no",
                       gpu.dma_buf ? "yes" : "no", host.peer_memory_module ? "loaded" : "not loaded");
  if (!rdma || !gpu.gpudirect || gpu.dma_buf || host.peer_memory_module) return f;
  f.level = Level::note;
  f.advice =
      "no RDMA device can reach this GPU's memory: install the driver's open kernel modules, or modprobe "
      "nvidia_peermem";
  return f;
}

Finding nearest(const SystemTree& system, const client::gpu::GpuFacts& gpu, const std::vector<RdmaPort>& ports) {
  const std::string ours = transport::folder_of_function(system, gpu.bus_id);
  Finding f{.part = "gpu", .what = fmt::format("GPU {} to RDMA", gpu.device)};
  Distance best = Distance::unknown;
  std::string list;
  for (const RdmaPort& port : ports) {
    const std::string theirs = transport::folder_of_rdma_device(system, port.device);
    const Distance d =
        distance(ours, transport::numa_node_of(system, ours), theirs, transport::numa_node_of(system, theirs));
    best = std::min(best, d);
    list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", port.device, to_string(d));
  }
  f.says = list;
  if (best == Distance::other_node) {
    f.level = Level::note;
    f.advice =
        "data between this GPU and the network cross the link between processors: use a device of the same node, if "
        "there is one";
  }
  return f;
}

std::optional<Finding> iommu(const SystemTree& system) {
  if (system.list("/sys/class/iommu").empty()) return std::nullopt;
  const bool passes = system.read("/proc/cmdline").value_or("").contains("iommu=pt");
  return Finding{.part = "gpu",
                 .what = "IOMMU",
                 .level = passes ? Level::good : Level::note,
                 .says = passes ? "on, passing through" : "on, translating: devices may not reach each other directly",
                 .advice = passes ? "" : "boot with iommu=pt, or turn it off in the firmware"};
}

}  // namespace

GpuReport ask_cuda() {
  auto driver = kernels::cuda::open_cuda_driver();
  if (!driver) return {.missing = driver.error().message};
  GpuReport report;
  (*driver)->driver_version(report.driver_version);
  int count = 0;
  const auto result = (*driver)->device_count(count);
  if (result != kernels::cuda::CudaResult::success)
    return {.missing = cuda_error(**driver, result, "counting GPUs").message};
  for (int device = 0; device < count; ++device) report.gpus.push_back(client::gpu::gpu_facts(**driver, device));
  return report;
}

Findings check_gpus(const SystemTree& system, const GpuReport& report) {
  if (!report.missing.empty()) {
    const std::size_t present = nvidia_devices(system);
    return {{.part = "gpu",
             .what = "CUDA driver",
             .level = present > 0 ? Level::mend : Level::note,
             .says = report.missing,
             .advice = present > 0
                           ? fmt::format("{} NVIDIA device(s) are on the bus without a driver: install or load it, and "
                                         "check that nvidia-smi lists them",
                                         present)
                           : ""}};
  }
  Findings findings{{.part = "gpu",
                     .what = "CUDA driver",
                     .level = report.gpus.empty() ? Level::note : Level::good,
                     .says = fmt::format("for CUDA {}.{}, {} GPU(s)", report.driver_version / 1000,
                                         report.driver_version % 1000 / 10, report.gpus.size()),
                     .advice = {}}};
  const auto ports = active_ports(system);
  const auto host = client::gpu::HostFacts{.peer_memory_module = system.exists("/sys/module/nvidia_peermem") ||
                                                                 system.exists("/sys/module/nv_peer_mem")};
  for (const auto& gpu : report.gpus) {
    findings.push_back(memory_of(gpu, host, !ports.empty()));
    if (!ports.empty()) findings.push_back(nearest(system, gpu, ports));
  }
  if (!ports.empty() && !report.gpus.empty()) {
    if (auto finding = iommu(system)) findings.push_back(std::move(*finding));
  }
  return findings;
}

}  // namespace tributary::cli::doctor
