#pragma once
// A pool of packet buffers (mbufs), in DPDK's memory; or, in builds with TRIBUTARY_DPDK_GPU and on hosts whose GPU DPDK
// drives, in the GPU's memory, which the network device then writes to directly.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tributary/protocol/error.h"

struct rte_mempool;

namespace tributary::transport::dpdk {

class GpuMemory;

struct PoolSettings {
  std::string name;  // unique in the process
  std::uint32_t mbufs = 0;
  std::uint32_t data_room = 0;
  int node = -1;  // NUMA node of the memory; -1: any
};

class PacketPool {
 public:
  /// Makes the pool in DPDK's memory. The text of Errc::exhausted names the bytes that were asked for.
  [[nodiscard]] static Result<std::unique_ptr<PacketPool>> make(const PoolSettings& settings);
  /// Makes the pool in a GPU's memory: bytes_of(settings) bytes from `offset` on.
  [[nodiscard]] static Result<std::unique_ptr<PacketPool>> make_on_gpu(const PoolSettings& settings,
                                                                       std::shared_ptr<const GpuMemory> memory,
                                                                       std::size_t offset);
  [[nodiscard]] static std::size_t bytes_of(const PoolSettings& settings) noexcept {
    return std::size_t{settings.mbufs} * settings.data_room;
  }
  /// All packets must be back in the pool before it is destroyed.
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  [[nodiscard]] rte_mempool* get() const noexcept { return pool_; }

 private:
  PacketPool(rte_mempool* pool, std::shared_ptr<const GpuMemory> memory);

  rte_mempool* const pool_;
  const std::shared_ptr<const GpuMemory> memory_;
};

}  // namespace tributary::transport::dpdk
