#pragma once
// Stand-ins for what the kernel does where there is a GPU, over the memory of the fake CUDA driver: the peer-memory
// module, by which its addresses can be registered, and dma-bufs, which software RoCE does not take. They are in place
// of the library's own calls, in this program, and pass everything else on.
#include <atomic>
#include <cstdint>

namespace tributary::test {

struct DeviceRegistration {
  std::atomic<bool> peer_memory{true};  // off: such addresses cannot be registered, as without the module
  std::atomic<bool> dma_bufs{false};    // on: dma-bufs can; off: what the RDMA device itself says
  std::atomic<std::uint64_t> by_peer_memory{0}, by_dma_buf{0}, dma_bufs_refused{0};  // registrations
  std::atomic<int> refusal{0};                                                       // errno of the last
};
DeviceRegistration& device_registration();

}  // namespace tributary::test
