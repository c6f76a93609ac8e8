// Takes the place of gpu_memory.cc in builds without TRIBUTARY_DPDK_GPU: GpuMemory::allocate() fails, so no other
// function is called.
#include "transport/dpdk/gpu_memory.h"

namespace tributary::transport::dpdk {

Result<std::shared_ptr<GpuMemory>> GpuMemory::allocate(const std::string&, std::size_t, rte_device*) {
  return fail(Errc::unsupported, "this build knows no GPU memory (TRIBUTARY_DPDK_GPU)");
}
GpuMemory::~GpuMemory() = default;

}  // namespace tributary::transport::dpdk
