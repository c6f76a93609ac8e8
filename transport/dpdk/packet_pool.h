#pragma once
// The buffers that packets are kept in (a pool of mbufs): in DPDK's memory, or in builds with TRIBUTARY_DPDK_GPU, on
// hosts whose GPU DPDK drives, in the GPU's, which the network device then writes to directly.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tributary/protocol/error.h"

struct rte_mempool;
struct rte_device;

namespace tributary::transport::dpdk {

class GpuMemory;

struct PoolSettings {
  std::string name;  // unique in the process
  std::uint32_t mbufs = 0;
  std::uint32_t data_room = 0;
  int node = -1;  // of memory; -1: any
};

class PacketPool {
 public:
  /// Errc::exhausted says how much was asked for.
  [[nodiscard]] static Result<std::unique_ptr<PacketPool>> make(const PoolSettings& settings);
  /// In a GPU's memory, made known to `device`. Errc::unsupported: there is no GPU, or this build does not know them.
  [[nodiscard]] static Result<std::unique_ptr<PacketPool>> make_on_gpu(const PoolSettings& settings,
                                                                       rte_device* device);
  /// All packets must be back.
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  [[nodiscard]] rte_mempool* get() const noexcept { return pool_; }
  /// Where the processor sees what the device has at an address: so many bytes further on. 0 but for a GPU's memory.
  [[nodiscard]] std::ptrdiff_t seen_at() const noexcept { return seen_at_; }

 private:
  PacketPool(rte_mempool* pool, std::unique_ptr<GpuMemory> memory, std::ptrdiff_t seen_at);

  rte_mempool* const pool_;
  const std::unique_ptr<GpuMemory> memory_;
  const std::ptrdiff_t seen_at_;
};

/// GPUs that DPDK drives here; 0 in builds that do not know them.
[[nodiscard]] int gpus_available() noexcept;

}  // namespace tributary::transport::dpdk
