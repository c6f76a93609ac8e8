// Checks GPUs, with facts from their driver and from the kernel.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "client/cli/doctor/checks.h"
#include "client/cli/doctor/kernel_text.h"
#include "client/cli/doctor/pci.h"

namespace tributary::cli::doctor {
namespace {

std::size_t nvidia_gpus(const SystemTree& system) {
  return static_cast<std::size_t>(
      std::ranges::count_if(gpus_of(system), [&](const std::string& id) { return is_nvidia(system, id); }));
}

bool has_peer_memory_module(const SystemTree& system) {
  return system.exists("/sys/module/nvidia_peermem") || system.exists("/sys/module/nv_peer_mem");
}

Finding memory_of(const SystemTree& system, const client::gpu::GpuFacts& gpu) {
  const bool module = has_peer_memory_module(system);
  Finding f{.part = "gpu", .what = fmt::format("GPU {} {}", gpu.device, gpu.bus_id)};
  f.found = fmt::format("{}; GPUDirect RDMA {}, dma-buf {}", gpu.name, gpu.gpudirect ? "yes" : "no",
                        gpu.dma_buf ? "yes" : "no");
  if (transport::active_ports(system).empty() || !gpu.gpudirect || gpu.dma_buf || module) return f;
  f.level = Level::bad;
  f.why = "no RDMA device can reach this GPU's memory: every byte is copied through host memory first";
  f.mend = "modprobe nvidia_peermem, or install the driver's open kernel modules, which have dma-buf";
  return f;
}

Finding without_driver(const SystemTree& system, const std::string& missing) {
  const std::size_t present = nvidia_gpus(system);
  Finding f{.part = "gpu", .what = "CUDA driver", .found = "not needed: no NVIDIA GPU is on the bus"};
  if (present == 0) return f;
  f.level = Level::bad;
  f.found = fmt::format("{}; {} NVIDIA GPU(s) are on the bus", missing, present);
  f.why = "no program can use the GPUs";
  f.mend = "install or load the driver (modprobe nvidia), and check that nvidia-smi lists them";
  return f;
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
  if (!report.missing.empty()) return {without_driver(system, report.missing)};
  Findings findings{{.part = "gpu",
                     .what = "CUDA driver",
                     .found = fmt::format("for CUDA {}.{}, {} GPU(s)", report.driver_version / 1000,
                                          report.driver_version % 1000 / 10, report.gpus.size())}};
  for (const auto& gpu : report.gpus) findings.push_back(memory_of(system, gpu));
  return findings;
}

Findings check_peer_memory(const SystemTree& system) {
  if (nvidia_gpus(system) == 0 || transport::active_ports(system).empty()) return {};
  Finding f{.part = "gpu", .what = "peer memory"};
  const std::string version = system.read("/proc/driver/nvidia/version").value_or("");
  const bool module = has_peer_memory_module(system), open = version.contains("Open Kernel Module");
  f.found = fmt::format("nvidia_peermem {}; kernel modules {}", module ? "loaded" : "not loaded",
                        version.empty() ? "not loaded" : (open ? "open, with dma-buf" : "closed, without dma-buf"));
  if (module || open) return {f};
  f.level = Level::bad;
  f.why = "no RDMA device can reach the GPUs' memory: every byte is copied through host memory first";
  f.mend = version.empty() ? "modprobe nvidia"
                           : "modprobe nvidia_peermem, or install the driver's open kernel modules, which have dma-buf";
  return {f};
}

}  // namespace tributary::cli::doctor
