#pragma once
// Chooses the way between a GPU's memory and the network, by a pure function of facts. So tests cover every case
// without the hardware, and `tributary doctor` and the log agree.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu {

enum class CopyRoute : std::uint8_t {
  dma_buf,      // the RDMA device reads and writes the GPU's memory, which it gets from the kernel as a dma-buf
  peer_memory,  // the RDMA device reads and writes the GPU's memory, through NVIDIA's kernel module
  staging,      // data pass through pinned host memory
};
[[nodiscard]] const char* to_string(CopyRoute path) noexcept;

/// The driver's facts about one GPU.
struct GpuFacts {
  int device = 0;
  std::string name;
  std::string bus_id;      // text such as "0000:3b:00.0"
  bool gpudirect = false;  // another device can map the GPU's memory
  bool dma_buf = false;    // the driver can export the GPU's memory as a dma-buf
  bool can_flush = false;  // the driver can wait for the writes of other devices
  int write_ordering = 0;  // value of DeviceAttribute::gpudirect_write_ordering
};

/// Facts about the host's kernel.
struct HostFacts {
  bool peer_memory_module = false;  // the kernel has nvidia_peermem, or its predecessor nv_peer_mem
};

/// Facts about the transport in use.
struct TransportFacts {
  std::string name;            // name such as "tcp"
  bool rdma = false;           // a device moves the payloads
  bool device_memory = false;  // the transport's device can use memory that the processor cannot reach
};

/// The user's choice (TRIBUTARY_GPUDIRECT).
enum class DirectMode : std::uint8_t {
  automatic,
  off,
  dma_buf,      // only this way
  peer_memory,  // only this way, without a check whether the kernel has the module
};

struct PathFacts {
  GpuFacts gpu;
  HostFacts host;
  TransportFacts transport;
  DirectMode mode = DirectMode::automatic;
};

struct PathChoice {
  CopyRoute path = CopyRoute::staging;  // first of `ways`
  /// The ways to try, in this order. A device may still refuse a way that the facts allow. The last way is staging,
  /// which always works.
  std::vector<CopyRoute> ways;
  /// True: flush the network's writes before the GPU may use them.
  bool flush = false;
  /// A whole sentence for people: the ways to try, and for every other way the reason against it.
  std::string sentence;
};

[[nodiscard]] PathChoice choose_path(const PathFacts& facts);

/// Asks an initialised driver for the facts. A fact that the driver does not know counts as false.
[[nodiscard]] GpuFacts gpu_facts(kernels::cuda::CudaDriver& driver, int device);
/// Finds the facts about the kernel below the directory `root`, which is "" except in tests.
[[nodiscard]] HostFacts host_facts(const std::string& root = "");

}  // namespace tributary::client::gpu
