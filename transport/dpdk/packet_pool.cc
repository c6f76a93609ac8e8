#include "transport/dpdk/packet_pool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>

#include <cstring>

#include "transport/dpdk/budget.h"
#include "transport/dpdk/gpu_memory.h"

namespace tributary::transport::dpdk {

PacketPool::PacketPool(rte_mempool* pool, std::shared_ptr<const GpuMemory> memory)
    : pool_(pool), memory_(std::move(memory)) {}

PacketPool::~PacketPool() {
  ::rte_mempool_free(pool_);
}

Result<std::unique_ptr<PacketPool>> PacketPool::make(const PoolSettings& settings) {
  rte_mempool* const pool = ::rte_pktmbuf_pool_create(settings.name.c_str(), settings.mbufs, kCache, 0,
                                                      static_cast<std::uint16_t>(settings.data_room), settings.node);
  if (pool == nullptr) {
    return fail(Errc::exhausted, std::to_string(settings.mbufs) + " buffers of " + std::to_string(settings.data_room) +
                                     " bytes (" + std::strerror(rte_errno) + ")");
  }
  return std::unique_ptr<PacketPool>(new PacketPool(pool, nullptr));
}

Result<std::unique_ptr<PacketPool>> PacketPool::make_on_gpu(const PoolSettings& settings,
                                                            std::shared_ptr<const GpuMemory> memory,
                                                            std::size_t offset) {
  const rte_pktmbuf_extmem extent{.buf_ptr = static_cast<std::byte*>(memory->of_device()) + offset,
                                  .buf_iova = RTE_BAD_IOVA,
                                  .buf_len = bytes_of(settings),
                                  .elt_size = static_cast<std::uint16_t>(settings.data_room)};
  rte_mempool* const pool =
      ::rte_pktmbuf_pool_create_extbuf(settings.name.c_str(), settings.mbufs, kCache, 0,
                                       static_cast<std::uint16_t>(settings.data_room), settings.node, &extent, 1);
  if (pool == nullptr) return fail(Errc::exhausted, std::string("a pool over GPU memory: ") + std::strerror(rte_errno));
  return std::unique_ptr<PacketPool>(new PacketPool(pool, std::move(memory)));
}

}  // namespace tributary::transport::dpdk
