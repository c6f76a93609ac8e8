#pragma once
// Memory of a GPU that a network device writes to, and in which this processor reads every header (rte_gpudev).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tributary/protocol/error.h"

struct rte_device;

namespace tributary::transport::dpdk {

class GpuMemory {
 public:
  /// Allocates memory of the GPU that DPDK calls `gpu`. Errc::unsupported: DPDK drives no GPU of this name, the GPU's
  /// memory cannot be mapped, or `device` cannot reach it.
  [[nodiscard]] static Result<std::shared_ptr<GpuMemory>> allocate(const std::string& gpu, std::size_t bytes,
                                                                   rte_device* device);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] void* of_device() const noexcept { return memory_; }
  [[nodiscard]] std::byte* of_processor() const noexcept { return mapped_; }
  /// The processor sees a byte this many bytes behind the address that the device uses for it.
  [[nodiscard]] std::ptrdiff_t seen_at() const noexcept { return mapped_ - static_cast<std::byte*>(memory_); }

 private:
  GpuMemory(std::int16_t gpu, std::size_t bytes, rte_device* device) : gpu_(gpu), bytes_(bytes), device_(device) {}
  [[nodiscard]] Status map(std::size_t page_bytes);

  const std::int16_t gpu_;
  const std::size_t bytes_;
  rte_device* const device_;
  void* memory_ = nullptr;
  std::byte* mapped_ = nullptr;
  bool registered_ = false;
  bool known_to_device_ = false;
};

}  // namespace tributary::transport::dpdk
