// GPUs, and how near they are to RDMA devices.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>

#include "client/cli/doctor/checks.h"

namespace tributary::cli::doctor {
namespace {

constexpr const char* kNvidia = "0x10de";

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) parts.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return parts;
}

/// Display and 3D controllers of NVIDIA, whether a driver has them or not.
std::size_t nvidia_devices(const SystemTree& system) {
  const auto devices = system.list("/sys/bus/pci/devices");
  return static_cast<std::size_t>(std::ranges::count_if(devices, [&](const std::string& id) {
    const std::string folder = "/sys/bus/pci/devices/" + id;
    return system.read(folder + "/vendor") == kNvidia &&
           system.read(folder + "/class").value_or("").starts_with("0x03");
  }));
}

std::optional<std::int64_t> node_of(const SystemTree& system, const std::string& folder) {
  const auto node = system.number(folder + "/numa_node");
  return node && *node >= 0 ? node : std::nullopt;  // -1: there is one node only
}

Finding memory_of(const client::gpu::GpuFacts& gpu, const client::gpu::HostFacts& host, bool rdma) {
  Finding f{.part = "gpu", .what = fmt::format("GPU {} {}", gpu.device, gpu.bus_id)};
  f.says = fmt::format("{}; GPUDirect RDMA {}, dma-buf {}, nvidia_peermem {}", gpu.name, gpu.gpudirect ? "yes" : "no",
                       gpu.dma_buf ? "yes" : "no", host.peer_memory_module ? "loaded" : "not loaded");
  if (!rdma || !gpu.gpudirect || gpu.dma_buf || host.peer_memory_module) return f;
  f.level = Level::note;
  f.advice =
      "no RDMA device can reach this GPU's memory: install the open kernel modules of the driver, or modprobe "
      "nvidia_peermem";
  return f;
}

Finding nearest(const SystemTree& system, const client::gpu::GpuFacts& gpu, const std::vector<RdmaPort>& ports) {
  std::string id = gpu.bus_id;
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string ours = system.resolved("/sys/bus/pci/devices/" + id);
  Finding f{.part = "gpu", .what = fmt::format("GPU {} to RDMA", gpu.device)};
  Distance best = Distance::unknown;
  std::string list;
  for (const RdmaPort& port : ports) {
    const std::string theirs = system.resolved("/sys/class/infiniband/" + port.device + "/device");
    const Distance d = distance(ours, node_of(system, ours), theirs, node_of(system, theirs));
    best = std::min(best, d);
    list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", port.device, to_string(d));
  }
  f.says = list;
  if (best == Distance::other_node || best == Distance::unknown) {
    f.level = Level::note;
    f.advice =
        "data between this GPU and the network crosses the processors' link: use a device of its own node, if "
        "there is one";
  }
  return f;
}

std::optional<Finding> iommu(const SystemTree& system) {
  if (system.list("/sys/class/iommu").empty()) return std::nullopt;
  const bool passes = system.read("/proc/cmdline").value_or("").find("iommu=pt") != std::string::npos;
  return Finding{.part = "gpu",
                 .what = "IOMMU",
                 .level = passes ? Level::good : Level::note,
                 .says = passes ? "on, passing through" : "on, translating: devices may not reach each other directly",
                 .advice = passes ? "" : "boot with iommu=pt, or turn it off in the firmware"};
}

}  // namespace

Distance distance(const std::string& one, std::optional<std::int64_t> node_of_one, const std::string& other,
                  std::optional<std::int64_t> node_of_other) {
  const auto a = parts_of(one), b = parts_of(other);
  if (a.empty() || b.empty()) return Distance::unknown;
  std::size_t shared = 0;
  while (shared < a.size() && shared < b.size() && a[shared] == b[shared]) ++shared;
  // sys, devices, pci0000:3a (the root), 0000:3a:00.0 (its port), 0000:3b:00.0 (a switch), ...
  constexpr std::size_t kRoot = 3, kSwitch = 4;
  if (shared > kSwitch) return Distance::same_switch;
  if (shared >= kRoot) return Distance::same_root;
  if (!node_of_one || !node_of_other) return a[0] == b[0] ? Distance::same_node : Distance::unknown;
  return *node_of_one == *node_of_other ? Distance::same_node : Distance::other_node;
}

const char* to_string(Distance distance) noexcept {
  switch (distance) {
    case Distance::same_switch:
      return "below one switch";
    case Distance::same_root:
      return "below one root complex";
    case Distance::same_node:
      return "in one NUMA node";
    case Distance::other_node:
      return "in another NUMA node";
    case Distance::unknown:
      return "distance unknown";
  }
  return "?";
}

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
                           ? fmt::format("{} NVIDIA device(s) are on the bus: install or load their driver, and "
                                         "see whether nvidia-smi lists them",
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
