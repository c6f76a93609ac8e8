#pragma once
// Stand-ins for the kernel's code for GPU memory, over the memory of the fake CUDA driver: the peer-memory module,
// which makes it possible to register the memory's addresses, and dma-bufs, which software RoCE refuses. In this
// program they replace the library's calls, and pass calls for other memory on to the library.
#include <atomic>
#include <cstdint>

namespace tributary::test {

struct DeviceRegistration {
  std::atomic<bool> peer_memory{true};  // off: GPU addresses cannot be registered, as without the module
  std::atomic<bool> dma_bufs{false};    // on: dma-bufs can be registered; off: the RDMA device itself decides
  std::atomic<std::uint64_t> by_peer_memory{0}, by_dma_buf{0}, dma_bufs_refused{0};  // counts of registrations
  std::atomic<int> refusal{0};                                                       // errno of the last refusal
};
DeviceRegistration& device_registration();

}  // namespace tributary::test
