#pragma once
// Chooses how a GPU's memory gets to the network, from facts alone: every case can be tested without the hardware, and
// `tributary doctor` and the log say the same.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu {

enum class CopyRoute : std::uint8_t {
  dma_buf,      // the RDMA device reads and writes the GPU's memory, which the kernel hands to it as a dma-buf
  peer_memory,  // the same, through NVIDIA's kernel module
  staging,      // through pinned host memory
};
[[nodiscard]] const char* to_string(CopyRoute path) noexcept;

/// The driver's facts about one GPU.
struct GpuFacts {
  int device = 0;
  std::string name;
  std::string bus_id;      // "0000:3b:00.0"
  bool gpudirect = false;  // another device can map its memory
  bool dma_buf = false;    // its memory can be handed over as a dma-buf
  bool can_flush = false;  // the driver can wait for the writes of other devices
  int write_ordering = 0;  // values of DeviceAttribute::gpudirect_write_ordering
};

/// The kernel's facts.
struct HostFacts {
  bool peer_memory_module = false;  // nvidia_peermem, or its predecessor nv_peer_mem
};

/// Facts about the transport in use.
struct TransportFacts {
  std::string name;            // "tcp"
  bool rdma = false;           // a device moves the payloads
  bool device_memory = false;  // that device can be given memory that the processor does not reach
};

/// The user's choice (TRIBUTARY_GPUDIRECT).
enum class DirectMode : std::uint8_t {
  automatic,
  off,
  dma_buf,      // this way alone
  peer_memory,  // this way alone, without asking whether the kernel has the module
};

struct PathFacts {
  GpuFacts gpu;
  HostFacts host;
  TransportFacts transport;
  DirectMode mode = DirectMode::automatic;
};

struct PathChoice {
  CopyRoute path = CopyRoute::staging;  // the first of `ways`
  /// The ways to try in turn. A device may still refuse a way that the facts allow. The last way is staging, which
  /// always works.
  std::vector<CopyRoute> ways;
  /// Whether the network's writes must be flushed before the GPU is told of them.
  bool flush = false;
  /// A whole sentence: the ways to try, and for every other way the reason why not.
  std::string sentence;
};

[[nodiscard]] PathChoice choose_path(const PathFacts& facts);

/// Asks an initialised driver. A fact that the driver does not know counts as no.
[[nodiscard]] GpuFacts gpu_facts(kernels::cuda::CudaDriver& driver, int device);
/// `root` is "" except in tests.
[[nodiscard]] HostFacts host_facts(const std::string& root = "");

}  // namespace tributary::client::gpu
