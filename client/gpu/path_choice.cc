#include "client/gpu/path_choice.h"

#include <array>
#include <filesystem>

namespace tributary::client::gpu {
namespace {

using kernels::cuda::CudaDriver;
using kernels::cuda::CudaResult;
using kernels::cuda::DeviceAttribute;

constexpr int kWritesOrderedForOwner = 100;

int attribute(CudaDriver& driver, DeviceAttribute which, int device) {
  int value = 0;
  return driver.device_attribute(value, which, device) == CudaResult::success ? value : 0;
}

/// Returns the setting that forbids this way; empty: the settings allow it.
std::string forbidden(DirectMode mode, CopyRoute path) {
  switch (mode) {
    case DirectMode::automatic:
      return {};
    case DirectMode::off:
      return "TRIBUTARY_GPUDIRECT=off forbids it";
    case DirectMode::dma_buf:
      return path == CopyRoute::dma_buf ? "" : "TRIBUTARY_GPUDIRECT=dma-buf forbids it";
    case DirectMode::peer_memory:
      return path == CopyRoute::peer_memory ? "" : "TRIBUTARY_GPUDIRECT=peer-memory forbids it";
  }
  return {};
}

/// Returns the reason why a network device cannot reach the GPU's memory in any way; empty: it can reach it.
std::string obstacle(const PathFacts& facts) {
  if (!facts.transport.rdma) return "the transport " + facts.transport.name + " has the processor move payloads";
  if (!facts.transport.device_memory)
    return "the transport " + facts.transport.name + " cannot use memory that the processor does not reach";
  if (!facts.gpu.gpudirect) return "the driver says that this GPU does not support GPUDirect RDMA";
  if (!facts.gpu.can_flush && facts.gpu.write_ordering < kWritesOrderedForOwner)
    return "the GPU does not order the writes of other devices, and the driver cannot wait for them";
  return {};
}

std::string dma_buf_obstacle(const PathFacts& facts) {
  if (auto why = forbidden(facts.mode, CopyRoute::dma_buf); !why.empty()) return why;
  if (auto why = obstacle(facts); !why.empty()) return why;
  return facts.gpu.dma_buf ? ""
                           : "the driver gives no dma-buf of this GPU's memory (that needs the open kernel modules)";
}

std::string peer_memory_obstacle(const PathFacts& facts) {
  if (auto why = forbidden(facts.mode, CopyRoute::peer_memory); !why.empty()) return why;
  if (auto why = obstacle(facts); !why.empty()) return why;
  if (facts.mode == DirectMode::peer_memory || facts.host.peer_memory_module) return {};
  return "the kernel module nvidia_peermem is not loaded";
}

}  // namespace

const char* to_string(CopyRoute path) noexcept {
  switch (path) {
    case CopyRoute::dma_buf:
      return "dma-buf";
    case CopyRoute::peer_memory:
      return "peer memory";
    case CopyRoute::staging:
      return "staging";
  }
  return "?";
}

PathChoice choose_path(const PathFacts& facts) {
  const std::string gpu = "GPU " + std::to_string(facts.gpu.device) + " (" + facts.gpu.name + ")";
  const bool flush = facts.gpu.write_ordering < kWritesOrderedForOwner;
  const std::string flushed = flush ? ", with a flush after each arrival" : "";
  const std::string no_dma_buf = dma_buf_obstacle(facts);
  const std::string no_peer_memory = peer_memory_obstacle(facts);
  const std::string reached = gpu + ": in large in-network operations the network reads and writes its memory, ";
  if (no_dma_buf.empty() && no_peer_memory.empty()) {
    return {CopyRoute::dma_buf,
            {CopyRoute::dma_buf, CopyRoute::peer_memory},
            flush,
            reached + "as a dma-buf, or, where an RDMA device refuses that, by nvidia_peermem" + flushed};
  }
  if (no_dma_buf.empty()) {
    return {CopyRoute::dma_buf,
            {CopyRoute::dma_buf},
            flush,
            reached + "as a dma-buf" + flushed + "; not by nvidia_peermem: " + no_peer_memory};
  }
  if (no_peer_memory.empty()) {
    return {CopyRoute::peer_memory,
            {CopyRoute::peer_memory},
            flush,
            reached + "by nvidia_peermem" + flushed + "; not as a dma-buf: " + no_dma_buf};
  }
  const std::string why = no_dma_buf == no_peer_memory
                              ? "neither as a dma-buf nor by nvidia_peermem: " + no_dma_buf
                              : "not as a dma-buf: " + no_dma_buf + "; not by nvidia_peermem: " + no_peer_memory;
  return {CopyRoute::staging, {}, false, gpu + ": data go through pinned host memory; " + why};
}

GpuFacts gpu_facts(CudaDriver& driver, int device) {
  std::array<char, 256> name{}, bus_id{};
  GpuFacts facts{.device = device};
  if (driver.device_name(name.data(), static_cast<int>(name.size() - 1), device) == CudaResult::success)
    facts.name = name.data();
  if (driver.device_bus_id(bus_id.data(), static_cast<int>(bus_id.size() - 1), device) == CudaResult::success)
    facts.bus_id = bus_id.data();
  facts.gpudirect = attribute(driver, DeviceAttribute::gpudirect_rdma, device) != 0;
  facts.dma_buf = attribute(driver, DeviceAttribute::dma_buf, device) != 0;
  facts.can_flush = (attribute(driver, DeviceAttribute::gpudirect_flush_options, device) & 1) != 0;
  facts.write_ordering = attribute(driver, DeviceAttribute::gpudirect_write_ordering, device);
  return facts;
}

HostFacts host_facts(const std::string& root) {
  std::error_code ignored;
  const auto loaded = [&](const char* module) {
    return std::filesystem::exists(root + "/sys/module/" + module, ignored);
  };
  return {.peer_memory_module = loaded("nvidia_peermem") || loaded("nv_peer_mem")};
}

}  // namespace tributary::client::gpu
