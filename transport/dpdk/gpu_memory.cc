#include "transport/dpdk/gpu_memory.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_gpudev.h>
#include <rte_memory.h>

#include <algorithm>
#include <cstring>

namespace tributary::transport::dpdk {
namespace {

constexpr std::size_t kPageBytes = 65536;  // page size of a GPU whose driver does not tell it

std::unexpected<Error> refused(const std::string& what) {
  return fail(Errc::unsupported, what + ": " + std::strerror(rte_errno));
}

}  // namespace

Result<std::shared_ptr<GpuMemory>> GpuMemory::allocate(const std::string& gpu, std::size_t bytes, rte_device* device) {
  std::int16_t id = 0;
  rte_gpu_info info{};
  std::string others;
  RTE_GPU_FOREACH(id) {
    if (::rte_gpu_info_get(id, &info) != 0) continue;
    if (info.name == gpu) break;
    others += (others.empty() ? "; it drives " : ", ") + std::string(info.name);
  }
  if (id < 0) return fail(Errc::unsupported, "DPDK drives no GPU " + gpu + " here" + others);
  const std::size_t page = std::max(info.page_size, kPageBytes);
  std::shared_ptr<GpuMemory> memory(new GpuMemory(id, (bytes + page - 1) / page * page, device));
  if (auto ok = memory->map(page); !ok) return std::unexpected(ok.error());
  return memory;
}

Status GpuMemory::map(std::size_t page_bytes) {
  memory_ = ::rte_gpu_mem_alloc(gpu_, bytes_, static_cast<unsigned>(page_bytes));
  if (memory_ == nullptr) return refused("the GPU gives no memory");
  mapped_ = static_cast<std::byte*>(::rte_gpu_mem_cpu_map(gpu_, bytes_, memory_));
  if (mapped_ == nullptr) return refused("the GPU's memory cannot be read from here");
  registered_ = ::rte_extmem_register(memory_, bytes_, nullptr, 0, page_bytes) == 0;
  if (!registered_) return refused("the GPU's memory cannot be registered");
  known_to_device_ = ::rte_dev_dma_map(device_, memory_, RTE_BAD_IOVA, bytes_) == 0;
  if (!known_to_device_) return refused("the network device does not reach the GPU's memory");
  return {};
}

GpuMemory::~GpuMemory() {
  if (known_to_device_) ::rte_dev_dma_unmap(device_, memory_, RTE_BAD_IOVA, bytes_);
  if (registered_) ::rte_extmem_unregister(memory_, bytes_);
  if (mapped_ != nullptr) ::rte_gpu_mem_cpu_unmap(gpu_, memory_);
  if (memory_ != nullptr) ::rte_gpu_mem_free(gpu_, memory_);
}

}  // namespace tributary::transport::dpdk
