#pragma once
// Memory of a GPU that a network device writes to and this processor can read (rte_gpudev): it looks at every header.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tributary/protocol/error.h"

struct rte_device;

namespace tributary::transport::dpdk {

class GpuMemory {
 public:
  /// Of the first GPU. Errc::unsupported: there is none, its memory cannot be mapped, or `device` cannot reach it.
  [[nodiscard]] static Result<std::unique_ptr<GpuMemory>> allocate(std::size_t bytes, rte_device* device);
  ~GpuMemory();
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] void* of_device() const noexcept { return memory_; }
  [[nodiscard]] std::byte* of_processor() const noexcept { return mapped_; }

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
