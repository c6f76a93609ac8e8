#pragma once
// How a GPU's memory gets to the network: decided from facts alone, so that every case can be tested without the
// hardware, and `tributary doctor` and the log say the same.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/kernels/cuda_driver.h"

namespace tributary::client::gpu {

enum class Path : std::uint8_t {
  dma_buf,      // the RDMA device reads and writes the GPU's memory, which the kernel hands to it as a dma-buf
  peer_memory,  // the same by NVIDIA's kernel module
  staging,      // by way of pinned host memory
};
[[nodiscard]] const char* to_string(Path path) noexcept;

/// What the driver says of one GPU.
struct GpuFacts {
  int device = 0;
  std::string name;
  std::string bus_id;      // "0000:3b:00.0"
  bool gpudirect = false;  // its memory can be mapped by another device
  bool dma_buf = false;    // and be handed over as a dma-buf
  bool can_flush = false;  // the driver waits for what others wrote, when asked
  int write_ordering = 0;  // as DeviceAttribute::gpudirect_write_ordering
};

/// What the kernel says.
struct HostFacts {
  bool peer_memory_module = false;  // nvidia_peermem, or its predecessor nv_peer_mem
};

/// What the transport in use says.
struct TransportFacts {
  std::string name;            // "tcp"
  bool rdma = false;           // a device moves the payloads
  bool device_memory = false;  // and can be told of memory that the processor does not reach
};

/// What the user says (TRIBUTARY_GPUDIRECT).
enum class DirectMode : std::uint8_t {
  automatic,
  off,
  dma_buf,      // that way alone
  peer_memory,  // likewise; whether the kernel has the module is not asked
};

struct PathFacts {
  GpuFacts gpu;
  HostFacts host;
  TransportFacts transport;
  DirectMode mode = DirectMode::automatic;
};

struct PathChoice {
  Path path = Path::staging;  // the first
  /// What is tried in turn, without staging, which always can be had: what the facts allow, a device may still refuse.
  std::vector<Path> ways;
  /// The GPU must be made to see what the network has written before it is told of it.
  bool flush = false;
  /// Whole: what is tried, and of every way that is not, why.
  std::string sentence;
};

[[nodiscard]] PathChoice choose_path(const PathFacts& facts);

/// Of a device of an initialised driver. What cannot be asked counts as not there.
[[nodiscard]] GpuFacts gpu_facts(kernels::cuda::CudaDriver& driver, int device);
/// `root`: "" but in tests.
[[nodiscard]] HostFacts host_facts(const std::string& root = "");

}  // namespace tributary::client::gpu
